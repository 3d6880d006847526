#include "stream/delta_assembler.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr size_t kMostDone = 1024;  // maximum size of `done` for each stream

}  // namespace

bool DeltaAssembler::is_done(Id id) const {
  const auto found = streams_.find(id.first);
  return found != streams_.end() && (id.second < found->second.done_before || found->second.done.contains(id.second));
}

void DeltaAssembler::set_done(Id id) {
  Stream& stream = streams_[id.first];
  stream.done.insert(id.second);
  if (stream.done.size() <= kMostDone) return;
  stream.done_before = *stream.done.begin() + 1;
  stream.done.erase(stream.done.begin());
}

/// Whether a delta is of another run, or not newer than the current iteration: such a delta is never applied.
bool DeltaAssembler::is_past(const StreamedAbout& about) const {
  if (!run_.empty() && about.run != run_) return true;
  return iteration_ >= 0 && about.iteration <= iteration_;
}

bool DeltaAssembler::fits(const StreamedAbout& about) const {
  return about.base < 0 || iteration_ < 0 || about.base == iteration_;
}

bool DeltaAssembler::outlives(const Held& held, Id of, const Held& applied, Id id) const {
  if (of == id) return false;
  if (of.first == id.first && of.second < id.second) return false;
  if (held.has_begin && held.about.iteration <= applied.about.iteration) return false;
  // If the producer of `held` has ended, a later message of another producer makes `held` obsolete.
  return of.first == id.first || held.last_arrival > applied.first_arrival || held.has_begin;
}

std::map<DeltaAssembler::Id, DeltaAssembler::Held>::iterator DeltaAssembler::drop(std::map<Id, Held>::iterator at,
                                                                                  bool counts) {
  held_bytes_ -= at->second.bytes;
  statistics_.given_up += counts;
  set_done(at->first);
  return held_.erase(at);
}

void DeltaAssembler::take(int32_t partition, int64_t offset, std::string_view message) {
  read_to_[partition] = offset + 1;
  ++arrivals_;
  ++statistics_.messages;
  statistics_.bytes += static_cast<int64_t>(message.size());
  DeltaMessageHead head;
  std::string_view body;
  const auto damaged = [&](std::string why) {
    ++statistics_.damaged;
    statistics_.trouble = std::move(why);
  };
  if (std::string why = read_delta_message(message, head, body); !why.empty()) return damaged(std::move(why));
  StreamedAbout about;
  uint32_t total = 0, crc = 0;
  if (head.kind == DeltaMessageKind::begin) try {
      about = read_begin_body(body);
    } catch (const Error& error) {
      return damaged(error.what());
    }
  if (head.kind == DeltaMessageKind::end && (!read_end_body(body, total, crc) || total != head.index + 1))
    return damaged("the last message of a delta is invalid: expected the number of messages and their checksum");
  const Id id{head.stream, head.delta};
  const auto known = held_.find(id);
  if (is_done(id) || (known != held_.end() && known->second.messages.contains(head.index))) {
    ++statistics_.doubled;
    return;
  }
  Stream& stream = streams_[head.stream];
  stream.first = stream.seen == 0 ? head.sequence : std::min(stream.first, head.sequence);
  stream.last = stream.seen == 0 ? head.sequence : std::max(stream.last, head.sequence);
  ++stream.seen;
  Held& held = held_[id];
  if (held.messages.empty()) held.first_arrival = arrivals_;
  held.last_arrival = arrivals_;
  held.messages.emplace(head.index, message);
  held.bytes += static_cast<int64_t>(message.size());
  held_bytes_ += static_cast<int64_t>(message.size());
  const auto [first, is_new] = held.first_offsets.emplace(partition, offset);
  if (!is_new) first->second = std::min(first->second, offset);
  if (head.kind == DeltaMessageKind::begin) {
    held.has_begin = true;
    held.about = std::move(about);
    if (is_past(held.about)) {
      drop(held_.find(id), false);
      return;
    }
  }
  if (head.kind == DeltaMessageKind::end) {
    held.total = total;
    held.crc = crc;
  }
  if (held_bytes_ > most_held_) shed(id);
}

/// Drops the oldest buffered deltas. Deltas that build on a dropped delta cannot be applied; a later whole model
/// replaces them.
void DeltaAssembler::shed(Id current) {
  while (held_bytes_ > most_held_) {
    auto oldest = held_.end();
    for (auto at = held_.begin(); at != held_.end(); ++at)
      if (at->first != current && !(ready_ && at->first == ready_id_) &&
          (oldest == held_.end() || at->second.first_arrival < oldest->second.first_arrival))
        oldest = at;
    if (oldest == held_.end()) return;
    drop(oldest, true);
  }
}

std::shared_ptr<const StreamedDelta> DeltaAssembler::decode(const Held& held) const {
  auto delta = std::make_shared<StreamedDelta>();
  delta->about = held.about;
  delta->tables.resize(held.about.tables.size());
  std::vector<uint32_t> crcs;
  for (const auto& [index, message] : held.messages) {
    DeltaMessageHead head;
    std::string_view body;
    read_delta_message(message, head, body);
    if (index + 1 < held.total) crcs.push_back(head.crc);
    add_message(head, body, *delta);
  }
  if (crc_of_crcs(crcs) != held.crc)
    throw Error(Kind::data,
                "the checksum over all messages of a delta does not "
                "match");
  return delta;
}

std::shared_ptr<const StreamedDelta> DeltaAssembler::next() {
  while (!ready_) {
    auto best = held_.end();
    for (auto at = held_.begin(); at != held_.end(); ++at) {
      const StreamedAbout& about = at->second.about;
      if (!at->second.whole() || !fits(about)) continue;
      // Order of application: first deltas that build on the current iteration, by iteration; then whole models, the
      // newest first.
      const auto rank = [](const StreamedAbout& one) {
        return one.base >= 0 ? std::pair(0, one.iteration) : std::pair(1, -one.iteration);
      };
      if (best == held_.end() || rank(about) < rank(best->second.about)) best = at;
    }
    if (best == held_.end()) return nullptr;
    try {
      ready_ = decode(best->second);
      ready_id_ = best->first;
    } catch (const Error& error) {
      statistics_.damaged += static_cast<int64_t>(best->second.messages.size());
      statistics_.trouble = error.what();
      drop(best, true);
    }
  }
  return ready_;
}

void DeltaAssembler::taken() {
  HCTR_EXPECT(ready_, "taken() without next()");
  ready_.reset();
  ++statistics_.deltas;
  const auto applied = held_.find(ready_id_);
  iteration_ = applied->second.about.iteration;
  for (auto at = held_.begin(); at != held_.end();)
    if (at == applied || outlives(at->second, at->first, applied->second, ready_id_))
      ++at;
    else
      at = drop(at, !at->second.whole());
  drop(applied, false);
}

void DeltaAssembler::skip_to(int64_t iteration) {
  if (iteration <= iteration_) return;
  iteration_ = iteration;
  ready_.reset();
  for (auto at = held_.begin(); at != held_.end();)
    at = at->second.has_begin && is_past(at->second.about) ? drop(at, false) : std::next(at);
}

std::map<int32_t, int64_t> DeltaAssembler::offsets() const {
  std::map<int32_t, int64_t> offsets = read_to_;
  const auto applied = ready_ ? held_.find(ready_id_) : held_.end();
  for (const auto& [id, held] : held_) {
    if (applied != held_.end() && !outlives(held, id, applied->second, ready_id_)) continue;
    for (const auto& [partition, first] : held.first_offsets) {
      int64_t& offset = offsets[partition];
      offset = std::min(offset, first);
    }
  }
  return offsets;
}

StreamStatistics DeltaAssembler::statistics() const {
  StreamStatistics all = statistics_;
  all.held = static_cast<int64_t>(held_.size());
  for (const auto& [id, stream] : streams_)
    if (stream.seen > 0) all.missing += static_cast<int64_t>(stream.last - stream.first + 1 - stream.seen);
  return all;
}

}  // namespace hctr
