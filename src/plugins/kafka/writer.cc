// A producer of librdkafka.
#include <chrono>

#include "plugins/kafka/kafka_calls.h"

namespace hctr {
namespace {

class RdKafkaWriter : public KafkaWriter {
 public:
  ~RdKafkaWriter() override {
    if (!client_) return;
    rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
    rd_kafka_poll(client_, 0);
    rd_kafka_destroy_flags(client_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }

  const char* open(const KafkaSetting* settings, int64_t count) {
    const KafkaSetting ours[] = {
        {"enable.idempotence", "true"}, {"linger.ms", "5"}, {"message.timeout.ms", "0"}, {"client.id", "huge_ctr"}};
    std::string problem;
    KafkaConf conf = kafka_conf(ours, std::size(ours), settings, count, &trouble_, problem);
    if (!conf) return kafka_problem(problem);
    rd_kafka_conf_set_dr_msg_cb(conf.get(), [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
      auto* const self = static_cast<RdKafkaWriter*>(message->_private);
      ++self->reports_;
      if (message->err && self->failure_.empty()) self->failure_ = rd_kafka_err2str(message->err);
    });
    char why[512] = "";
    client_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why, sizeof why);
    if (!client_) return kafka_problem(why);
    conf.release();  // client_ owns the configuration now
    return nullptr;
  }

  const char* partitions(const char* topic, int64_t ms, int32_t& count) override {
    return kafka_partitions(client_, topic, ms, count);
  }

  const char* send(const char* topic, int32_t partition, const void* bytes, int64_t size, bool& full) override {
    const rd_kafka_resp_err_t error =
        rd_kafka_producev(client_, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                          RD_KAFKA_V_VALUE(const_cast<void*>(bytes), static_cast<size_t>(size)),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(this), RD_KAFKA_V_END);
    full = error == RD_KAFKA_RESP_ERR__QUEUE_FULL;
    return error && !full ? kafka_problem(rd_kafka_err2str(error)) : nullptr;
  }

  int64_t serve(int64_t ms) override {
    const int64_t before = reports_;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    do {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      rd_kafka_poll(client_, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    } while (reports_ == before && rd_kafka_outq_len(client_) > 0 && std::chrono::steady_clock::now() < end);
    char why[512] = "";
    if (rd_kafka_fatal_error(client_, why, sizeof why) && failure_.empty()) failure_ = why;
    return rd_kafka_outq_len(client_);
  }

  const char* failure() const override { return failure_.c_str(); }
  const char* trouble() const override { return trouble_.text(); }

 private:
  rd_kafka_t* client_ = nullptr;
  KafkaTrouble trouble_;
  int64_t reports_ = 0;
  std::string failure_;
};

}  // namespace

const char* open_kafka_writer(const KafkaSetting* settings, int64_t count, KafkaWriter** writer) {
  auto made = std::make_unique<RdKafkaWriter>();
  if (const char* const problem = made->open(settings, count)) return problem;
  *writer = made.release();
  return nullptr;
}

}  // namespace hctr
