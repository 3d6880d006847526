#include "stream/kafka_library.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/plugin_file.h"

namespace hctr {
namespace {

/// The texts of the returned settings are owned by `texts`.
std::vector<KafkaSetting> settings_of(const StreamOptions& options, std::map<std::string, std::string>& texts) {
  if (options.brokers.empty()) throw Error(Kind::config, "a stream needs \"brokers\": \"host:port\"");
  texts = options.librdkafka;
  texts["bootstrap.servers"] = options.brokers;
  std::vector<KafkaSetting> settings;
  for (const auto& [name, value] : texts) settings.push_back({name.c_str(), value.c_str()});
  return settings;
}

}  // namespace

const KafkaPlugin& kafka_plugin() {
  static const KafkaPlugin& plugin = load_plugin<KafkaPlugin>(
      {"Kafka", kKafkaPluginFile, kKafkaPluginEntry, kKafkaPlugin, "librdkafka", "librdkafka-dev", "Kafka"});
  return plugin;
}

std::string why_no_kafka() try {
  kafka_plugin();
  return "";
} catch (const Error& error) {
  return error.what();
}

void expect_kafka(const char* problem, std::string_view what) {
  if (problem) throw Error(Kind::io, cat(what, ": ", problem));
}

std::unique_ptr<KafkaWriter> open_kafka_writer(const StreamOptions& options) {
  std::map<std::string, std::string> texts;
  StreamOptions all = options;
  const int64_t most = std::max(options.message_bytes + 1024, int64_t{1'000'000});
  all.librdkafka.try_emplace("message.max.bytes", cat(most));
  all.librdkafka.try_emplace("queue.buffering.max.kbytes",
                             cat(std::max<int64_t>(options.queue_bytes, 2 * options.message_bytes) / 1024));
  const std::vector<KafkaSetting> settings = settings_of(all, texts);
  KafkaWriter* writer = nullptr;
  if (const char* const problem = kafka_plugin().write(settings.data(), static_cast<int64_t>(settings.size()), &writer))
    throw Error(Kind::config, problem);
  return std::unique_ptr<KafkaWriter>(writer);
}

std::unique_ptr<KafkaReader> open_kafka_reader(const StreamOptions& options, const std::vector<std::string>& topics) {
  std::map<std::string, std::string> texts;
  StreamOptions all = options;
  if (!options.group.empty()) all.librdkafka["group.id"] = options.group;
  all.librdkafka.try_emplace("queued.max.messages.kbytes", cat(std::max<int64_t>(options.queue_bytes / 1024, 1)));
  const std::vector<KafkaSetting> settings = settings_of(all, texts);
  std::vector<const char*> names;
  for (const std::string& topic : topics) names.push_back(topic.c_str());
  KafkaReader* reader = nullptr;
  if (const char* const problem = kafka_plugin().read(names.data(), static_cast<int64_t>(names.size()), settings.data(),
                                                      static_cast<int64_t>(settings.size()), &reader))
    throw Error(Kind::config, problem);
  return std::unique_ptr<KafkaReader>(reader);
}

}  // namespace hctr
