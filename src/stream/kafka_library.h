// Opens Kafka producers and consumers through the plug-in, and turns the plug-in's error texts into exceptions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/delta_stream.h"
#include "stream/kafka_plugin.h"

namespace hctr {

/// Loads the plug-in at the first call. Errors: Error(io) naming how to install it.
const KafkaPlugin& kafka_plugin();
/// Why the plug-in cannot be loaded; empty if it can.
std::string why_no_kafka();

/// Throws Error(io) "<what>: <problem>" unless `problem` is null.
void expect_kafka(const char* problem, std::string_view what);

/// Errors: Error(config) for options that librdkafka refuses.
std::unique_ptr<KafkaWriter> open_kafka_writer(const StreamOptions&);
std::unique_ptr<KafkaReader> open_kafka_reader(const StreamOptions&, const std::vector<std::string>& topics);

}  // namespace hctr
