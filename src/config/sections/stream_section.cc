#include "config/sections/stream_section.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/files.h"

namespace hctr {
namespace {

template <class S>
Schema<S> stream_schema(const char* title) {
  return Schema<S>(title)
      .need("brokers", &S::brokers, "brokers of Kafka: \"host:port\", several with commas")
      .opt("topic", &S::topic, "the topic, which must exist; of format hps the topics are hps_et.<model>.<table>")
      .opt("format", &S::format,
           "messages: \"deltas\", or \"hps\", those of HugeCTR's parameter server, which have no deltas, removed keys "
           "or dense weights")
      .opt("key_bytes", &S::key_bytes, "of format hps: bytes of a key, 8 or 4", between(4, 8))
      .opt("queue_bytes", &S::queue_bytes, "messages that the client keeps in memory", at_least(65536))
      .opt("librdkafka", &S::librdkafka,
           "other settings of the client, each \"name=value\", such as \"security.protocol=ssl\"")
      .opt("librdkafka_file", &S::librdkafka_file,
           "a file with such settings, one a line: passwords belong there, since configs are stored with models");
}

void check_stream(StreamSection& s, const std::string& pointer, Problems& problems) {
  s.given = true;
  if (s.brokers.empty()) problems.error(pointer + "/brokers", "expected \"host:port\", found \"\"");
  if (s.topic.empty() && s.format == StreamFormat::deltas) problems.error(pointer + "/topic", "the topic is missing");
  if (!s.topic.empty() && s.format == StreamFormat::hps)
    problems.error(pointer + "/topic", "format \"hps\" has a topic for each table, hps_et.<model>.<table>");
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
    const std::string text = read_text(s.librdkafka_file, "file of settings of librdkafka");
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
      .opt("message_bytes", &P::message_bytes, "the most bytes of a message", between(4 << 10, 16 << 20))
      .opt("whole", &P::whole, "publish whole models too, which deltas build on; false: servers get those from files")
      .opt("wait_at_end", &P::wait_at_end, "seconds that the end of training waits for a broker at most", at_least(0))
      .opt("hps_model", &P::hps_model, "of format hps: the model in the names of topics")
      .together([](P& p, const std::string& pointer, Problems& problems) {
        check_stream(p, pointer, problems);
        if (p.hps_model.empty() == (p.format == StreamFormat::hps))
          problems.error(pointer + "/hps_model",
                         "format \"hps\" needs the name of the model, and no other format does");
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
           "gets offsets too, so that tools of Kafka show the lag; the store continues from its own")
      .opt("held_bytes", &C::held_bytes, "the most bytes of deltas that are not whole yet, or whose base is missing",
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
