#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "core/base/expect.h"
#include "core/base/not_finite.h"
#include "core/base/wall_time.h"
#include "stream/delta_message.h"
#include "stream/kafka_library.h"

namespace hctr {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int64_t kLeastMessage = 4 << 10, kMostMessage = int64_t{16} << 20;

uint64_t random_stream_id() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

struct DeltaProducer::State {
  StreamOptions options;
  std::unique_ptr<KafkaWriter> writer;
  double wait_seconds = 30;
  int32_t partitions = 0;
  StreamedAbout about;
  bool begun = false;
  DeltaMessageHead head;  // header of the next message
  std::vector<uint32_t> crcs;
  std::atomic<bool> stopped{false};

  [[noreturn]] void give_up(const std::string& why) {
    const std::string trouble = writer ? writer->trouble() : "";
    writer.reset();  // drops the queued messages
    begun = false;
    throw Error(Kind::io, cat("topic '", options.topic, "' at '", options.brokers, "': ", why,
                              trouble.empty() ? "" : " (", trouble, trouble.empty() ? "" : ")"));
  }
  SteadyClock::time_point deadline() const {
    return SteadyClock::now() + std::chrono::microseconds(static_cast<int64_t>(wait_seconds * 1e6));
  }
  void open();
  void post(DeltaMessageKind, size_t table, size_t count, const std::string& body);
  void flush();
  const StreamedAbout::Table& checked(size_t table, size_t keys, size_t slots) const;
};

void DeltaProducer::State::open() {
  if (!writer) {
    writer = open_kafka_writer(options);
    head = {.stream = random_stream_id()};
  }
  const auto end = deadline();
  for (const char* problem = "";; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now()).count();
    if (left <= 0) give_up(cat("no broker has reported the topic's partitions within ", wait_seconds, " s: ", problem));
    if (stopped) give_up("stopped");
    problem = writer->partitions(options.topic.c_str(), std::min<int64_t>(left, 1000), partitions);
    if (!problem) return;
  }
}

void DeltaProducer::State::post(DeltaMessageKind kind, size_t table, size_t count, const std::string& body) {
  head.kind = kind;
  head.table = static_cast<uint32_t>(table);
  head.count = static_cast<uint32_t>(count);
  std::string message;
  crcs.push_back(write_delta_message(head, body, message));
  const auto partition = static_cast<int32_t>(head.sequence % static_cast<uint64_t>(partitions));
  const auto end = deadline();
  for (bool full = true; full;) {
    const char* const problem =
        writer->send(options.topic.c_str(), partition, message.data(), static_cast<int64_t>(message.size()), full);
    if (problem) give_up(problem);
    if (!full) break;
    writer->serve(50);
    if (*writer->failure()) give_up(writer->failure());
    if (stopped || SteadyClock::now() > end)
      give_up(cat("the queue of ", options.queue_bytes, " bytes is full, and no broker has accepted a message for ",
                  wait_seconds, " s"));
  }
  ++head.index;
  ++head.sequence;
}

void DeltaProducer::State::flush() {
  const auto end = deadline();
  while (const int64_t waiting = writer->serve(50)) {
    if (*writer->failure()) give_up(writer->failure());
    if (stopped || SteadyClock::now() > end)
      give_up(cat("the broker has not confirmed ", waiting, " messages within ", wait_seconds, " s"));
  }
  if (*writer->failure()) give_up(writer->failure());
}

const StreamedAbout::Table& DeltaProducer::State::checked(size_t table, size_t keys, size_t slots) const {
  if (!begun) throw Error(Kind::usage, "call rows() and removed() of a delta between begin() and end()");
  if (table >= about.tables.size())
    throw Error(Kind::usage, cat("there is no table ", table, ": the delta has ", about.tables.size(), " tables"));
  const StreamedAbout::Table& of = about.tables[table];
  if (slots != (of.by_slot ? keys : 0))
    throw Error(Kind::usage, cat("table '", of.name, "' needs ", of.by_slot ? "one slot for each key" : "no slots",
                                 ", but ", slots, " slots were passed for ", keys, " keys"));
  return of;
}

DeltaProducer::DeltaProducer(StreamOptions options) : state_(std::make_unique<State>()) {
  if (options.topic.empty()) throw Error(Kind::config, "a stream needs a \"topic\"");
  if (options.message_bytes < kLeastMessage || options.message_bytes > kMostMessage)
    throw Error(Kind::config, cat("the maximum size of a message is ", options.message_bytes, " bytes; expected ",
                                  kLeastMessage, " to ", kMostMessage));
  state_->options = std::move(options);
  state_->writer = open_kafka_writer(state_->options);
  state_->head.stream = random_stream_id();
}

DeltaProducer::~DeltaProducer() = default;

void DeltaProducer::wait_at_most(double seconds) { state_->wait_seconds = seconds; }

void DeltaProducer::stop() { state_->stopped = true; }

void DeltaProducer::begin(const StreamedAbout& about) {
  State& s = *state_;
  if (s.begun) s.head.delta += 1;  // abandons the unfinished delta
  s.begun = false;
  for (const StreamedAbout::Table& table : about.tables)
    if (table.dim < 1) throw Error(Kind::usage, cat("table '", table.name, "' needs a dim of at least 1"));
  if (about.base >= about.iteration)
    throw Error(Kind::usage, cat("a delta of iteration ", about.iteration, " cannot build on iteration ", about.base,
                                 ": expected an earlier iteration"));
  s.open();
  s.about = about;
  if (s.about.written == 0) s.about.written = unix_time();
  s.head.index = 0;
  s.crcs.clear();
  s.begun = true;
  s.post(DeltaMessageKind::begin, 0, 0, begin_body(s.about));
}

void DeltaProducer::rows(size_t table, std::span<const int64_t> keys, std::span<const float> rows,
                         std::span<const int32_t> slots) {
  const StreamedAbout::Table& of = state_->checked(table, keys.size(), slots.size());
  const auto dim = static_cast<size_t>(of.dim);
  if (rows.size() != keys.size() * dim)
    throw Error(Kind::usage, cat("rows of table '", of.name, "': ", keys.size(), " keys have ", rows.size(),
                                 " numbers, expected ", dim, " for each key"));
  if (const int64_t at = find_not_finite(rows); at >= 0)
    throw Error(Kind::data, cat("table '", of.name, "': a number in the row of key ",
                                keys[static_cast<size_t>(at) / dim], " is not finite"));
  const size_t row_bytes = 12 + dim * sizeof(float);
  const auto most = (static_cast<size_t>(state_->options.message_bytes) - kDeltaHeadBytes) / row_bytes;
  for (size_t first = 0, count; first < keys.size(); first += count) {
    count = std::min(std::max<size_t>(most, 1), keys.size() - first);
    state_->post(DeltaMessageKind::rows, table, count,
                 rows_body(slots.empty() ? slots : slots.subspan(first, count), keys.subspan(first, count),
                           rows.subspan(first * dim, count * dim)));
  }
}

void DeltaProducer::removed(size_t table, std::span<const int64_t> keys, std::span<const int32_t> slots) {
  state_->checked(table, keys.size(), slots.size());
  const auto most = (static_cast<size_t>(state_->options.message_bytes) - kDeltaHeadBytes) / 12;
  for (size_t first = 0, count; first < keys.size(); first += count) {
    count = std::min(most, keys.size() - first);
    state_->post(DeltaMessageKind::removed, table, count,
                 rows_body(slots.empty() ? slots : slots.subspan(first, count), keys.subspan(first, count), {}));
  }
}

void DeltaProducer::file(std::string_view name, std::string_view bytes) {
  if (!state_->begun) throw Error(Kind::usage, "call file() of a delta between begin() and end()");
  if (name.size() > 1000)
    throw Error(Kind::usage, cat("the name of a file has ", name.size(), " bytes, expected at most 1000"));
  const auto most = static_cast<size_t>(state_->options.message_bytes) - kDeltaHeadBytes - 18 - name.size();
  for (size_t first = 0, count; first == 0 || first < bytes.size(); first += count) {
    count = std::min(most, bytes.size() - first);
    state_->post(DeltaMessageKind::file, 0, count, file_body(name, first, bytes.size(), bytes.substr(first, count)));
    if (bytes.empty()) break;
  }
}

void DeltaProducer::end() {
  State& s = *state_;
  if (!s.begun) throw Error(Kind::usage, "call begin() of a delta before end()");
  s.post(DeltaMessageKind::end, 0, 0, end_body(s.head.index + 1, crc_of_crcs(s.crcs)));
  s.flush();
  s.begun = false;
  s.head.delta += 1;
}

}  // namespace hctr
