// Opens producers and consumers of Kafka through the plug-in, and turns its error texts into exceptions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/delta_stream.h"
#include "stream/kafka_plugin.h"

namespace hctr {

/// Loads the plug-in, once. Errors: Error(io) naming how to get one.
const KafkaPlugin& kafka_plugin();
/// Why the plug-in is missing; empty if it is there.
std::string why_no_kafka();

/// Errors: Error(io) "<what>: <problem>" where there is a problem.
void expect_kafka(const char* problem, std::string_view what);

/// Errors: Error(config) for options that librdkafka refuses.
std::unique_ptr<KafkaWriter> open_kafka_writer(const StreamOptions&);
std::unique_ptr<KafkaReader> open_kafka_reader(const StreamOptions&, const std::vector<std::string>& topics);

}  // namespace hctr
