// The interface of the Kafka plug-in. It passes only plain types: no exceptions, no containers.
//
// The plug-in (src/plugins/kafka) is a separate library that is loaded when a stream is opened. Without librdkafka,
// everything else builds and runs.
#pragma once

#include <cstdint>

namespace hctr {

/// A setting of librdkafka.
struct KafkaSetting {
  const char *name, *value;
};

inline constexpr int64_t kKafkaFirst = -2;  ///< an offset that means the first message of the partition

/// The next message to read from a partition. `topic`: index among the reader's topics.
struct KafkaPlace {
  int32_t topic = 0, partition = 0;
  int64_t offset = kKafkaFirst;
};

struct KafkaMessage {
  int32_t topic = 0, partition = 0;
  int64_t offset = 0;
  int64_t time_ms = -1;  ///< when the message was written, in ms since 1970; -1: unknown
  const void* bytes = nullptr;
  int64_t size = 0;
  bool has_key = false, has_value = true;
};

/// Functions that can fail return an error text, or null. The text is valid until the same thread calls the plug-in
/// again. An object is used by one thread at a time.

class KafkaWriter {
 public:
  virtual ~KafkaWriter() = default;
  virtual const char* partitions(const char* topic, int64_t ms, int32_t& count) = 0;
  /// Queues a copy of the bytes. `full`: the queue is at its limit, and the message was not queued.
  virtual const char* send(const char* topic, int32_t partition, const void* bytes, int64_t size, bool& full) = 0;
  /// Waits at most `ms` until a message is delivered or fails. Returns the number of messages in flight.
  virtual int64_t serve(int64_t ms) = 0;
  /// Why the first undelivered message failed; empty: no message failed. After a failure the writer cannot be used.
  virtual const char* failure() const = 0;
  /// The last broker error that the client has reported.
  virtual const char* trouble() const = 0;
};

class KafkaReader {
 public:
  virtual ~KafkaReader() = default;
  virtual const char* partitions(int32_t topic, int64_t ms, int32_t& count) = 0;
  /// Returns the offset of the first message of the partition, and the offset that the next written message will get.
  virtual const char* range(int32_t topic, int32_t partition, int64_t ms, int64_t& first, int64_t& end) = 0;
  /// Restarts reading at these offsets. Only the listed partitions are read.
  virtual const char* start(const KafkaPlace* places, int64_t count) = 0;
  /// Reads the next message, which is valid until the next call. `any`: a message arrived within `ms`. An unreachable
  /// broker is not a failure.
  virtual const char* read(int64_t ms, KafkaMessage& message, bool& any) = 0;
  /// The end offset of a partition in the broker's last response; -1: unknown.
  virtual int64_t known_end(int32_t topic, int32_t partition) const = 0;
  virtual const char* trouble() const = 0;
  /// Commits offsets to the consumer group, for Kafka's tools. Reading does not depend on them. Does not wait.
  virtual const char* note(const KafkaPlace* places, int64_t count) = 0;
};

struct KafkaPlugin {
  int64_t version;    ///< the value of kKafkaPlugin when the plug-in was built
  const char* about;  ///< library and version, such as "librdkafka 2.0.2"
  const char* (*write)(const KafkaSetting* settings, int64_t count, KafkaWriter** writer);
  const char* (*read)(const char* const* topics, int64_t topic_count, const KafkaSetting* settings, int64_t count,
                      KafkaReader** reader);
};

inline constexpr int64_t kKafkaPlugin = 1;
inline constexpr const char* kKafkaPluginFile = "libhuge_ctr_kafka.so";
/// The plug-in's only exported symbol: const KafkaPlugin* ().
inline constexpr const char* kKafkaPluginEntry = "hctr_kafka_plugin";

}  // namespace hctr
