// The interface of the Kafka plug-in. Only plain types cross it: no exceptions, no containers.
//
// The plug-in (src/plugins/kafka) is a library of its own, loaded when a stream is opened: without librdkafka
// everything else builds and runs.
#pragma once

#include <cstdint>

namespace hctr {

/// A setting of librdkafka.
struct KafkaSetting {
  const char *name, *value;
};

inline constexpr int64_t kKafkaFirst = -2;  ///< as an offset: that of the first message there is

/// The next message to read of a partition. `topic`: its number among those of the reader.
struct KafkaPlace {
  int32_t topic = 0, partition = 0;
  int64_t offset = kKafkaFirst;
};

struct KafkaMessage {
  int32_t topic = 0, partition = 0;
  int64_t offset = 0;
  int64_t time_ms = -1;  ///< when it was written, since 1970; -1: unknown
  const void* bytes = nullptr;
  int64_t size = 0;
  bool has_key = false, has_value = true;
};

/// Functions that can fail return what went wrong, or null. The text lives until the same thread calls the plug-in
/// again. Calls of one object are made by one thread at a time.

class KafkaWriter {
 public:
  virtual ~KafkaWriter() = default;
  virtual const char* partitions(const char* topic, int64_t ms, int32_t& count) = 0;
  /// Queues a copy. `full`: it is not queued, since the queue is at its limit.
  virtual const char* send(const char* topic, int32_t partition, const void* bytes, int64_t size, bool& full) = 0;
  /// Waits until something is delivered or fails, for at most `ms`. Returns how many messages are under way.
  virtual int64_t serve(int64_t ms) = 0;
  /// What was wrong with the first message that was given up; empty: none was. The writer is of no use then.
  virtual const char* failure() const = 0;
  /// What the client has last reported of its brokers.
  virtual const char* trouble() const = 0;
};

class KafkaReader {
 public:
  virtual ~KafkaReader() = default;
  virtual const char* partitions(int32_t topic, int64_t ms, int32_t& count) = 0;
  /// The offsets of the first message there is and of the next one that will be written.
  virtual const char* range(int32_t topic, int32_t partition, int64_t ms, int64_t& first, int64_t& end) = 0;
  /// Reads on from these places, of these partitions alone.
  virtual const char* start(const KafkaPlace* places, int64_t count) = 0;
  /// The next message, which lives until the next call. `any`: there was one within `ms`. A broker that is away is no
  /// failure.
  virtual const char* read(int64_t ms, KafkaMessage& message, bool& any) = 0;
  /// The end of a partition as the last answer of its broker told it; -1: not known.
  virtual int64_t known_end(int32_t topic, int32_t partition) const = 0;
  virtual const char* trouble() const = 0;
  /// Tells the broker, which does not matter to what is read: tools of Kafka show it. Does not wait.
  virtual const char* note(const KafkaPlace* places, int64_t count) = 0;
};

struct KafkaPlugin {
  int64_t version;    ///< kKafkaPlugin of the program that it was built with
  const char* about;  ///< "librdkafka 2.0.2"
  const char* (*write)(const KafkaSetting* settings, int64_t count, KafkaWriter** writer);
  const char* (*read)(const char* const* topics, int64_t topic_count, const KafkaSetting* settings, int64_t count,
                      KafkaReader** reader);
};

inline constexpr int64_t kKafkaPlugin = 1;
inline constexpr const char* kKafkaPluginFile = "libhuge_ctr_kafka.so";
/// The plug-in's one symbol: const KafkaPlugin* ().
inline constexpr const char* kKafkaPluginEntry = "hctr_kafka_plugin";

}  // namespace hctr
