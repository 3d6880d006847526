// Texts, settings and topics of librdkafka.
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

/// Keeps a text for the caller of this thread.
const char* kafka_problem(std::string text);
/// What a client has last reported of its brokers. Threads of librdkafka write it.
class KafkaTrouble {
 public:
  void set(std::string text);
  const char* text() const;

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Settings of the caller over `ours`; the client's reports go to `trouble`. Null: `problem` says why.
KafkaConf kafka_conf(const KafkaSetting* ours, int64_t ours_count, const KafkaSetting* settings, int64_t count,
                     KafkaTrouble* trouble, std::string& problem);
/// The partitions of a topic. Null, or what went wrong.
const char* kafka_partitions(rd_kafka_t*, const char* topic, int64_t ms, int32_t& count);

const char* open_kafka_writer(const KafkaSetting*, int64_t count, KafkaWriter**);
const char* open_kafka_reader(const char* const* topics, int64_t topic_count, const KafkaSetting*, int64_t count,
                              KafkaReader**);

}  // namespace hctr
