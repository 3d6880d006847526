#include "stream/topic_reader.h"

#include <algorithm>
#include <thread>

#include "config/json.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr std::chrono::seconds kPartitionsAnew(5);  // interval of partition look-ups: a topic may get more partitions
constexpr int64_t kLeastMs = 10, kBetweenTriesMs = 20;

}  // namespace

std::chrono::steady_clock::time_point after_seconds(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
}

int64_t ms_until(std::chrono::steady_clock::time_point end) {
  const auto left = end - std::chrono::steady_clock::now();
  return std::max<int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(left).count(), 0);
}

std::string offsets_text(const TopicOffsets& offsets, const std::vector<std::string>& topics) {
  Json json, list(Json::Array{});
  for (const auto& [place, offset] : offsets)
    list.add(Json::Array{topics.at(static_cast<size_t>(place.first)), int64_t{place.second}, offset});
  json.set("offsets", std::move(list));
  return json.text();
}

TopicOffsets read_offsets_text(std::string_view text, const std::vector<std::string>& topics) {
  TopicOffsets offsets;
  if (text.empty()) return offsets;
  const auto wrong = [&] { return Error(Kind::data, cat("'", text, "' is not a position of a stream")); };
  const Json json = Json::parse(text, "the position of a stream");
  const Json* const list = json.find("offsets");
  if (!list || !list->array()) throw wrong();
  for (const Json& one : *list->array()) {
    const Json::Array* const entry = one.array();
    if (!entry || entry->size() != 3 || !(*entry)[0].string() || !(*entry)[1].integer() || !(*entry)[2].integer())
      throw wrong();
    const auto topic = std::ranges::find(topics, *(*entry)[0].string());
    if (topic != topics.end())
      offsets[{static_cast<int32_t>(topic - topics.begin()), static_cast<int32_t>(*(*entry)[1].integer())}] =
          *(*entry)[2].integer();
  }
  return offsets;
}

TopicReader::TopicReader(const StreamOptions& options, std::vector<std::string> topics, TopicOffsets from)
    : brokers_(options.brokers),
      topics_(std::move(topics)),
      reader_(open_kafka_reader(options, topics_)),
      offsets_(std::move(from)),
      partitions_(topics_.size()) {}

std::string TopicReader::where() const {
  return cat("topic '", topics_[0], "'", topics_.size() > 1 ? " and others" : "", " at '", brokers_, "'");
}

/// Returns false if no topic has a partition to read.
bool TopicReader::find_partitions(int64_t ms) {
  looked_ = std::chrono::steady_clock::now();
  bool changed = false, any = false;
  for (size_t t = 0; t < topics_.size(); ++t) {
    int32_t count = 0;
    if (const char* const problem = reader_->partitions(static_cast<int32_t>(t), std::max(ms, kLeastMs), count)) {
      trouble_ = cat("topic '", topics_[t], "': ", problem);
    } else {
      changed = changed || count != partitions_[t];
      partitions_[t] = count;
    }
    any = any || partitions_[t] > 0;
  }
  if (!changed) return any;
  std::vector<KafkaPlace> places;
  for (size_t t = 0; t < topics_.size(); ++t)
    for (int32_t p = 0; p < partitions_[t]; ++p) {
      const auto found = offsets_.find({static_cast<int32_t>(t), p});
      places.push_back({static_cast<int32_t>(t), p, found == offsets_.end() ? kKafkaFirst : found->second});
    }
  expect_kafka(reader_->start(places.data(), static_cast<int64_t>(places.size())), where());
  return true;
}

const KafkaMessage* TopicReader::read(int64_t ms) {
  if (std::ranges::all_of(partitions_, [](int32_t count) { return count == 0; }) && !find_partitions(ms)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(ms, kBetweenTriesMs)));
    return nullptr;
  }
  bool any = false;
  expect_kafka(reader_->read(ms, message_, any), where());
  if (!any) {
    if (std::chrono::steady_clock::now() - looked_ > kPartitionsAnew) find_partitions(std::max(ms, kLeastMs));
    return nullptr;
  }
  const auto [at, is_first] = offsets_.emplace(std::pair(message_.topic, message_.partition), message_.offset);
  missing_ += std::max<int64_t>(message_.offset - at->second, 0);
  repeated_ += std::max<int64_t>(at->second - message_.offset, 0);
  at->second = message_.offset + 1;
  return &message_;
}

bool TopicReader::caught_up(double seconds) {
  if (!ends_) {
    const auto end = after_seconds(seconds);
    while (!find_partitions(std::min<int64_t>(ms_until(end), 1000))) {
      if (ms_until(end) == 0)
        throw Error(Kind::io, cat(where(), " does not answer within ", seconds, " s: ", trouble_));
      std::this_thread::sleep_for(std::chrono::milliseconds(kBetweenTriesMs));
    }
    TopicOffsets ends;
    for (int32_t t = 0; t < static_cast<int32_t>(topics_.size()); ++t)
      for (int32_t p = 0; p < partitions_[static_cast<size_t>(t)]; ++p) {
        int64_t first = 0, last = 0;
        expect_kafka(reader_->range(t, p, std::max<int64_t>(ms_until(end), 100), first, last),
                     cat("the end of partition ", p, " of topic '", topics_[static_cast<size_t>(t)], "'"));
        if (last > first) ends[{t, p}] = last;
      }
    ends_ = std::move(ends);
  }
  return std::ranges::all_of(*ends_, [&](const auto& one) {
    const auto found = offsets_.find(one.first);
    return found != offsets_.end() && found->second >= one.second;
  });
}

int64_t TopicReader::partitions() const {
  int64_t all = 0;
  for (const int32_t count : partitions_) all += count;
  return all;
}

int64_t TopicReader::behind() const {
  int64_t behind = -1;
  for (int32_t t = 0; t < static_cast<int32_t>(topics_.size()); ++t)
    for (int32_t p = 0; p < partitions_[static_cast<size_t>(t)]; ++p) {
      const int64_t end = reader_->known_end(t, p);
      if (end < 0) continue;
      const auto found = offsets_.find({t, p});
      behind = std::max<int64_t>(behind, 0) + end - (found == offsets_.end() ? 0 : std::min(found->second, end));
    }
  return behind;
}

std::string TopicReader::trouble() const {
  const std::string of_client = reader_->trouble();
  return of_client.empty() ? trouble_ : of_client;
}

void TopicReader::note(const TopicOffsets& offsets) {
  std::vector<KafkaPlace> places;
  for (const auto& [place, offset] : offsets) places.push_back({place.first, place.second, offset});
  if (!places.empty()) reader_->note(places.data(), static_cast<int64_t>(places.size()));
}

}  // namespace hctr
