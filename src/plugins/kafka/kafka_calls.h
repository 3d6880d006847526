// Shared helpers for librdkafka: error texts, settings and topics.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <mutex>
#include <string>

#include "stream/kafka_plugin.h"

namespace hctr {

struct KafkaConfDeleter {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};
using KafkaConf = std::unique_ptr<rd_kafka_conf_t, KafkaConfDeleter>;
struct KafkaListDeleter {
  void operator()(rd_kafka_topic_partition_list_t* list) const { rd_kafka_topic_partition_list_destroy(list); }
};
using KafkaList = std::unique_ptr<rd_kafka_topic_partition_list_t, KafkaListDeleter>;

/// Stores an error text for this thread, and returns it.
const char* kafka_problem(std::string text);
/// The last broker error that a client has reported, written by threads of librdkafka.
class KafkaTrouble {
 public:
  void set(std::string text);
  const char* text() const;

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Makes a configuration from `ours` and `settings`, the caller's settings, which take precedence. The client's errors
/// go to `trouble`. Returns null if librdkafka refuses a setting; `problem` then has the reason.
KafkaConf kafka_conf(const KafkaSetting* ours, int64_t ours_count, const KafkaSetting* settings, int64_t count,
                     KafkaTrouble* trouble, std::string& problem);
/// Writes the number of partitions of a topic to `count`. Returns null, or an error text.
const char* kafka_partitions(rd_kafka_t*, const char* topic, int64_t ms, int32_t& count);

const char* open_kafka_writer(const KafkaSetting*, int64_t count, KafkaWriter**);
const char* open_kafka_reader(const char* const* topics, int64_t topic_count, const KafkaSetting*, int64_t count,
                              KafkaReader**);

}  // namespace hctr
