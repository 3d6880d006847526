// The solver's "publish" and a store's "stream": the Kafka topics for table deltas, which training publishes and a
// store consumes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.h"
#include "hctr/delta_stream.h"

namespace hctr {

/// The message format of a topic.
enum class StreamFormat {
  deltas,  ///< messages of this program
  hps      ///< messages of HugeCTR's Hierarchical Parameter Server
};
template <>
struct EnumWords<StreamFormat> {
  static const std::vector<std::pair<std::string, StreamFormat>>& table();
};

struct StreamSection {
  bool given = false;
  std::string brokers, topic;
  StreamFormat format = StreamFormat::deltas;
  int64_t key_bytes = 8;  ///< bytes per key in messages of format hps
  int64_t queue_bytes = int64_t{32} << 20;
  std::vector<std::string> librdkafka;  ///< options "name=value"
  std::string librdkafka_file;          ///< a file of "name=value" lines
};

struct PublishSection : StreamSection {
  int64_t message_bytes = 256 << 10;
  bool whole = true;
  double wait_at_end = 30;  // in seconds
  std::string hps_model;
  StreamOptions options() const;
};
Schema<PublishSection> publish_schema();

struct ConsumeSection : StreamSection {
  std::string group;
  int64_t held_bytes = int64_t{1} << 30;
  StreamOptions options() const;
};
Schema<ConsumeSection> consume_schema();

}  // namespace hctr
