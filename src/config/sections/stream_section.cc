#include "config/sections/stream_section.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/files.h"

namespace hctr {
namespace {

template <class S>
Schema<S> stream_schema(const char* title) {
  return Schema<S>(title)
      .need("brokers", &S::brokers, "Kafka brokers as \"host:port\", separated by commas")
      .opt("topic", &S::topic,
           "the topic, which must exist; with format hps the topics are named "
           "hps_et.<model>.<table>")
      .opt("format", &S::format,
           "format of messages: \"deltas\", or \"hps\" for HugeCTR's parameter server, whose messages contain rows "
           "only: no removed keys and no dense weights")
      .opt("key_bytes", &S::key_bytes, "with format hps: size of a key in bytes, 8 or 4", between(4, 8))
      .opt("queue_bytes", &S::queue_bytes, "bytes of messages that the client keeps in memory", at_least(65536))
      .opt("librdkafka", &S::librdkafka,
           "further librdkafka settings, each \"name=value\", such as \"security.protocol=ssl\"")
      .opt("librdkafka_file", &S::librdkafka_file,
           "a file with librdkafka settings, one per line; put passwords here, because configs are stored with "
           "models");
}

void check_stream(StreamSection& s, const std::string& pointer, Problems& problems) {
  s.given = true;
  if (s.brokers.empty()) problems.error(pointer + "/brokers", "expected \"host:port\", found \"\"");
  if (s.topic.empty() && s.format == StreamFormat::deltas) problems.error(pointer + "/topic", "the topic is missing");
  if (!s.topic.empty() && s.format == StreamFormat::hps)
    problems.error(pointer + "/topic",
                   "remove the topic: format \"hps\" has one topic for each table, hps_et.<model>.<table>");
  if (s.key_bytes != 4 && s.key_bytes != 8) problems.error(pointer + "/key_bytes", "expected 4 or 8");
  for (size_t i = 0; i < s.librdkafka.size(); ++i)
    if (const size_t at = s.librdkafka[i].find('='); at == 0 || at == std::string::npos)
      problems.error(cat(pointer, "/librdkafka/", i), cat("expected \"name=value\", found \"", s.librdkafka[i], "\""));
}

StreamOptions options_of(const StreamSection& s) {
  StreamOptions options{.brokers = s.brokers, .topic = s.topic, .queue_bytes = s.queue_bytes};
  const auto add = [&](std::string_view setting) {
    const size_t at = setting.find('=');
    options.librdkafka[std::string(setting.substr(0, at))] = setting.substr(at + 1);
  };
  if (!s.librdkafka_file.empty()) {
    const std::string text = read_text(s.librdkafka_file, "file of librdkafka settings");
    size_t number = 0;
    for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      ++number;
      if (line.empty() || line[0] == '#') continue;
      if (const size_t at = line.find('='); at == 0 || at == std::string::npos)
        throw Error(Kind::config, cat("'", s.librdkafka_file, "' line ", number, ": expected name=value"));
      add(line);
    }
  }
  for (const std::string& setting : s.librdkafka) add(setting);
  return options;
}

}  // namespace

const std::vector<std::pair<std::string, StreamFormat>>& EnumWords<StreamFormat>::table() {
  static const std::vector<std::pair<std::string, StreamFormat>> words = {{"deltas", StreamFormat::deltas},
                                                                          {"hps", StreamFormat::hps}};
  return words;
}

Schema<PublishSection> publish_schema() {
  using P = PublishSection;
  return stream_schema<P>("publish")
      .opt("message_bytes", &P::message_bytes, "maximum size of a message in bytes", between(4 << 10, 16 << 20))
      .opt("whole", &P::whole,
           "also publish the full models that deltas build on; false: servers read full models "
           "from files")
      .opt("wait_at_end", &P::wait_at_end, "maximum number of seconds that the end of training waits for a broker",
           at_least(0))
      .opt("hps_model", &P::hps_model, "with format hps: the model's name in the names of topics")
      .together([](P& p, const std::string& pointer, Problems& problems) {
        check_stream(p, pointer, problems);
        if (p.hps_model.empty() == (p.format == StreamFormat::hps))
          problems.error(pointer + "/hps_model",
                         "set hps_model with format \"hps\" only: it is the model's name in the names of topics");
      })
      .closed();
}

StreamOptions PublishSection::options() const {
  StreamOptions options = options_of(*this);
  options.message_bytes = message_bytes;
  return options;
}

Schema<ConsumeSection> consume_schema() {
  using C = ConsumeSection;
  return stream_schema<C>("stream")
      .opt("group", &C::group,
           "Kafka consumer group to which offsets are also committed, so that Kafka's tools show the lag; the "
           "store resumes from the offsets in its own commits")
      .opt("held_bytes", &C::held_bytes,
           "maximum number of bytes of deltas that are incomplete or whose base is "
           "missing",
           at_least(1 << 20))
      .together([](C& c, const std::string& pointer, Problems& problems) { check_stream(c, pointer, problems); })
      .closed();
}

StreamOptions ConsumeSection::options() const {
  StreamOptions options = options_of(*this);
  options.group = group;
  options.held_bytes = held_bytes;
  return options;
}

}  // namespace hctr
