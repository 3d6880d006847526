#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "config/json.h"
#include "core/base/expect.h"
#include "stream/delta_assembler.h"
#include "stream/kafka_library.h"

namespace hctr {
namespace {

using SourceClock = std::chrono::steady_clock;

constexpr int64_t kReadMs = 100;                    // of one look
constexpr std::chrono::seconds kPartitionsAnew(5);  // a topic can get more of them

int64_t ms_until(SourceClock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SourceClock::now()).count();
  return std::max<int64_t>(left, 0);
}

SourceClock::time_point after_seconds(double seconds) {
  return SourceClock::now() + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
}

std::map<int32_t, int64_t> offsets_of(std::string_view position, const std::string& topic) {
  std::map<int32_t, int64_t> offsets;
  if (position.empty()) return offsets;
  const auto wrong = [&] { return Error(Kind::data, cat("'", position, "' is no position of a stream")); };
  const Json json = Json::parse(position, "the position of a stream");
  const Json *const of = json.find("topic"), *const list = json.find("offsets");
  if (!of || !of->string() || !list || !list->array()) throw wrong();
  if (*of->string() != topic) return offsets;  // another topic is read from its first message
  for (const Json& one : *list->array()) {
    const Json::Array* const pair = one.array();
    if (!pair || pair->size() != 2 || !(*pair)[0].integer() || !(*pair)[1].integer()) throw wrong();
    offsets[static_cast<int32_t>(*(*pair)[0].integer())] = *(*pair)[1].integer();
  }
  return offsets;
}

}  // namespace

struct DeltaSource::State {
  StreamOptions options;
  std::unique_ptr<KafkaReader> reader;
  DeltaAssembler assembler;
  std::map<int32_t, int64_t> begin_at;  // offsets of partitions that nothing is read of yet
  int32_t partitions = 0;
  SourceClock::time_point looked{};
  std::optional<std::map<int32_t, int64_t>> ends;  // of caught_up()
  std::string trouble;

  std::map<int32_t, int64_t> merged(std::map<int32_t, int64_t> offsets) const {
    for (const auto& [partition, offset] : begin_at) offsets.try_emplace(partition, offset);
    return offsets;
  }
  std::vector<KafkaPlace> places(const std::map<int32_t, int64_t>& from) const {
    std::vector<KafkaPlace> places;
    for (int32_t p = 0; p < partitions; ++p) {
      const auto found = from.find(p);
      places.push_back({0, p, found == from.end() ? kKafkaFirst : found->second});
    }
    return places;
  }
  /// Reads the partitions there are. False: the broker does not answer.
  bool find_partitions(int64_t ms);
  /// Whether a message came.
  bool read(int64_t ms);
};

bool DeltaSource::State::find_partitions(int64_t ms) {
  int32_t count = 0;
  if (const char* const problem = reader->partitions(0, std::max<int64_t>(ms, 10), count)) {
    trouble = problem;
    if (partitions == 0) std::this_thread::sleep_for(std::chrono::milliseconds(std::min<int64_t>(ms, 20)));
    return partitions > 0;
  }
  looked = SourceClock::now();
  if (count == partitions) return true;
  partitions = count;
  const std::vector<KafkaPlace> from = places(merged(assembler.read_to()));
  expect_kafka(reader->start(from.data(), static_cast<int64_t>(from.size())), cat("topic '", options.topic, "'"));
  return true;
}

bool DeltaSource::State::read(int64_t ms) {
  KafkaMessage message;
  bool any = false;
  expect_kafka(reader->read(ms, message, any), cat("topic '", options.topic, "' at '", options.brokers, "'"));
  if (any)
    assembler.take(message.partition, message.offset,
                   {static_cast<const char*>(message.bytes), static_cast<size_t>(message.size)});
  else if (SourceClock::now() - looked > kPartitionsAnew)
    find_partitions(kReadMs);
  return any;
}

DeltaSource::DeltaSource(StreamOptions options, std::string_view position, std::string run, int64_t iteration) {
  if (options.topic.empty()) throw Error(Kind::config, "a stream needs a \"topic\"");
  auto offsets = offsets_of(position, options.topic);
  auto reader = open_kafka_reader(options, {options.topic});
  const int64_t held = options.held_bytes;
  state_.reset(new State{.options = std::move(options),
                         .reader = std::move(reader),
                         .assembler = DeltaAssembler(std::move(run), iteration, held),
                         .begin_at = std::move(offsets),
                         .ends = {},
                         .trouble = {}});
}

DeltaSource::~DeltaSource() = default;

std::shared_ptr<const StreamedDelta> DeltaSource::next(double seconds) {
  const auto end = after_seconds(seconds);
  State& s = *state_;
  for (bool first = true;; first = false) {
    if (auto delta = s.assembler.next()) return delta;
    const int64_t left = ms_until(end);
    if (left == 0 && !first) return nullptr;
    if (s.partitions == 0 && !s.find_partitions(std::min(left, 10 * kReadMs))) continue;
    s.read(std::min(left, kReadMs));
  }
}

void DeltaSource::taken() { state_->assembler.taken(); }

std::string DeltaSource::position() const {
  Json json, offsets(Json::Array{});
  for (const auto& [partition, offset] : state_->merged(state_->assembler.offsets()))
    offsets.add(Json::Array{int64_t{partition}, offset});
  json.set("topic", state_->options.topic);
  json.set("offsets", std::move(offsets));
  return json.text();
}

void DeltaSource::stored() {
  if (state_->options.group.empty()) return;
  std::vector<KafkaPlace> places;
  for (const auto& [partition, offset] : state_->assembler.offsets()) places.push_back({0, partition, offset});
  if (!places.empty()) state_->reader->note(places.data(), static_cast<int64_t>(places.size()));
}

void DeltaSource::skip_to(int64_t iteration) { state_->assembler.skip_to(iteration); }

bool DeltaSource::caught_up(double seconds) {
  State& s = *state_;
  if (!s.ends) {
    const auto end = after_seconds(seconds);
    while (s.partitions == 0)
      if (!s.find_partitions(ms_until(end)) && ms_until(end) == 0)
        throw Error(Kind::io, cat("topic '", s.options.topic, "' at '", s.options.brokers, "' does not answer within ",
                                  seconds, " s: ", s.trouble));
    std::map<int32_t, int64_t> ends;
    for (int32_t p = 0; p < s.partitions; ++p) {
      int64_t first = 0, last = 0;
      expect_kafka(s.reader->range(0, p, std::max<int64_t>(ms_until(end), 100), first, last),
                   cat("the end of partition ", p, " of topic '", s.options.topic, "'"));
      if (last > first) ends[p] = last;
    }
    s.ends = std::move(ends);
  }
  const auto read_to = s.merged(s.assembler.read_to());
  return std::ranges::all_of(*s.ends, [&](const auto& one) {
    const auto found = read_to.find(one.first);
    return found != read_to.end() && found->second >= one.second;
  });
}

StreamStatistics DeltaSource::statistics() const {
  const State& s = *state_;
  StreamStatistics all = s.assembler.statistics();
  if (all.trouble.empty()) all.trouble = s.reader->trouble();
  if (all.trouble.empty()) all.trouble = s.trouble;
  const auto read_to = s.merged(s.assembler.read_to());
  for (int32_t p = 0; p < s.partitions; ++p) {
    const int64_t end = s.reader->known_end(0, p);
    const auto found = read_to.find(p);
    if (end < 0) continue;
    all.behind = std::max<int64_t>(all.behind, 0) + end - (found == read_to.end() ? 0 : std::min(found->second, end));
  }
  return all;
}

}  // namespace hctr
