// A librdkafka consumer with assigned partitions. It joins no consumer group, so no rebalance can take a partition
// away.
#include <random>
#include <vector>

#include "plugins/kafka/kafka_calls.h"

namespace hctr {
namespace {

class RdKafkaReader : public KafkaReader {
 public:
  ~RdKafkaReader() override {
    drop_message();
    if (!client_) return;
    rd_kafka_assign(client_, nullptr);
    rd_kafka_consumer_close(client_);
    rd_kafka_destroy(client_);
  }

  const char* open(const char* const* topics, int64_t topic_count, const KafkaSetting* settings, int64_t count) {
    topics_.assign(topics, topics + topic_count);
    const std::string group = "huge_ctr-" + std::to_string(std::random_device()());  // librdkafka requires a group id
    const KafkaSetting ours[] = {{"group.id", group.c_str()},
                                 {"enable.auto.commit", "false"},
                                 {"enable.auto.offset.store", "false"},
                                 {"auto.offset.reset", "earliest"},
                                 {"check.crcs", "true"},
                                 {"topic.metadata.refresh.interval.ms", "5000"},
                                 {"fetch.wait.max.ms", "100"},
                                 {"client.id", "huge_ctr"}};
    std::string problem;
    KafkaConf conf = kafka_conf(ours, std::size(ours), settings, count, &trouble_, problem);
    if (!conf) return kafka_problem(problem);
    rd_kafka_conf_set_offset_commit_cb(
        conf.get(), [](rd_kafka_t*, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t*, void*) {});
    char why[512] = "";
    client_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), why, sizeof why);
    if (!client_) return kafka_problem(why);
    conf.release();
    rd_kafka_poll_set_consumer(client_);
    return nullptr;
  }

  const char* partitions(int32_t topic, int64_t ms, int32_t& count) override {
    return kafka_partitions(client_, name(topic), ms, count);
  }

  const char* range(int32_t topic, int32_t partition, int64_t ms, int64_t& first, int64_t& end) override {
    const rd_kafka_resp_err_t error =
        rd_kafka_query_watermark_offsets(client_, name(topic), partition, &first, &end, static_cast<int>(ms));
    return error ? kafka_problem(rd_kafka_err2str(error)) : nullptr;
  }

  const char* start(const KafkaPlace* places, int64_t count) override {
    const KafkaList list = list_of(places, count);
    const rd_kafka_resp_err_t error = rd_kafka_assign(client_, list.get());
    return error ? kafka_problem(rd_kafka_err2str(error)) : nullptr;
  }

  const char* read(int64_t ms, KafkaMessage& message, bool& any) override {
    drop_message();
    any = false;
    message_ = rd_kafka_consumer_poll(client_, static_cast<int>(ms));
    if (!message_) return nullptr;
    if (message_->err) {
      const char* const text = rd_kafka_message_errstr(message_);
      const std::string said = std::string(rd_kafka_err2str(message_->err)) + ": " + (text ? text : "");
      char why[512] = "";
      if (rd_kafka_fatal_error(client_, why, sizeof why)) return kafka_problem(why);
      switch (message_->err) {
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR__AUTHENTICATION:
          return kafka_problem(said);
        default:
          trouble_.set(said);
          return nullptr;
      }
    }
    any = true;
    message = {.topic = number(rd_kafka_topic_name(message_->rkt)),
               .partition = message_->partition,
               .offset = message_->offset,
               .time_ms = rd_kafka_message_timestamp(message_, nullptr),
               .bytes = message_->payload,
               .size = static_cast<int64_t>(message_->len),
               .has_key = message_->key != nullptr,
               .has_value = message_->payload != nullptr};
    return nullptr;
  }

  int64_t known_end(int32_t topic, int32_t partition) const override {
    int64_t first = -1, end = -1;
    if (rd_kafka_get_watermark_offsets(client_, name(topic), partition, &first, &end)) return -1;
    return end >= 0 ? end : -1;
  }

  const char* trouble() const override { return trouble_.text(); }

  const char* note(const KafkaPlace* places, int64_t count) override {
    const KafkaList list = list_of(places, count);
    const rd_kafka_resp_err_t error = rd_kafka_commit(client_, list.get(), 1);
    return error ? kafka_problem(rd_kafka_err2str(error)) : nullptr;
  }

 private:
  const char* name(int32_t topic) const { return topics_[static_cast<size_t>(topic)].c_str(); }
  int32_t number(const char* topic) const {
    int32_t at = 0;
    while (topics_[static_cast<size_t>(at)] != topic) ++at;
    return at;
  }
  KafkaList list_of(const KafkaPlace* places, int64_t count) const {
    KafkaList list(rd_kafka_topic_partition_list_new(static_cast<int>(count)));
    for (int64_t i = 0; i < count; ++i)
      rd_kafka_topic_partition_list_add(list.get(), name(places[i].topic), places[i].partition)->offset =
          places[i].offset == kKafkaFirst ? RD_KAFKA_OFFSET_BEGINNING : places[i].offset;
    return list;
  }
  void drop_message() {
    if (message_) rd_kafka_message_destroy(message_);
    message_ = nullptr;
  }

  std::vector<std::string> topics_;
  rd_kafka_t* client_ = nullptr;
  rd_kafka_message_t* message_ = nullptr;
  KafkaTrouble trouble_;
};

}  // namespace

const char* open_kafka_reader(const char* const* topics, int64_t topic_count, const KafkaSetting* settings,
                              int64_t count, KafkaReader** reader) {
  auto made = std::make_unique<RdKafkaReader>();
  if (const char* const problem = made->open(topics, topic_count, settings, count)) return problem;
  *reader = made.release();
  return nullptr;
}

}  // namespace hctr
