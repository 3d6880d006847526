// The plug-in's only exported symbol, and the code that writers and readers share.
#include <cstring>

#include "plugins/kafka/kafka_calls.h"

namespace hctr {

const char* kafka_problem(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

void KafkaTrouble::set(std::string text) {
  const std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

const char* KafkaTrouble::text() const {
  thread_local std::string kept;
  const std::lock_guard lock(mutex_);
  kept = text_;
  return kept.c_str();
}

KafkaConf kafka_conf(const KafkaSetting* ours, int64_t ours_count, const KafkaSetting* settings, int64_t count,
                     KafkaTrouble* trouble, std::string& problem) {
  KafkaConf conf(rd_kafka_conf_new());
  for (const auto& [list, many] : {std::pair(ours, ours_count), std::pair(settings, count)})
    for (int64_t i = 0; i < many; ++i) {
      char why[512] = "";
      if (rd_kafka_conf_set(conf.get(), list[i].name, list[i].value, why, sizeof why) == RD_KAFKA_CONF_OK) continue;
      problem = std::string("librdkafka refuses \"") + list[i].name + "\": \"" + list[i].value + "\": " + why;
      return nullptr;
    }
  rd_kafka_conf_set_opaque(conf.get(), trouble);
  rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t*, int code, const char* reason, void* to) {
    static_cast<KafkaTrouble*>(to)->set(std::string(rd_kafka_err2str(static_cast<rd_kafka_resp_err_t>(code))) + ": " +
                                        reason);
  });
  rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t*, int, const char*, const char*) {});
  return conf;
}

const char* kafka_partitions(rd_kafka_t* client, const char* topic, int64_t ms, int32_t& count) {
  const std::unique_ptr<rd_kafka_topic_t, void (*)(rd_kafka_topic_t*)> of(rd_kafka_topic_new(client, topic, nullptr),
                                                                          rd_kafka_topic_destroy);
  if (!of) return kafka_problem(rd_kafka_err2str(rd_kafka_last_error()));
  const rd_kafka_metadata_t* found = nullptr;
  const rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, of.get(), &found, static_cast<int>(ms));
  if (error) return kafka_problem(rd_kafka_err2str(error));
  const std::unique_ptr<const rd_kafka_metadata_t, void (*)(const rd_kafka_metadata_t*)> owner(
      found, rd_kafka_metadata_destroy);
  count = 0;
  if (found->topic_cnt == 1 && !found->topics[0].err) count = found->topics[0].partition_cnt;
  if (count > 0) return nullptr;
  return kafka_problem(found->topic_cnt == 1 ? rd_kafka_err2str(found->topics[0].err) : "the broker did not answer");
}

}  // namespace hctr

extern "C" __attribute__((visibility("default"))) const hctr::KafkaPlugin* hctr_kafka_plugin() {
  static const std::string about = std::string("librdkafka ") + rd_kafka_version_str();
  static const hctr::KafkaPlugin plugin = {.version = hctr::kKafkaPlugin,
                                           .about = about.c_str(),
                                           .write = hctr::open_kafka_writer,
                                           .read = hctr::open_kafka_reader};
  return &plugin;
}
