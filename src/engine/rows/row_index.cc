#include "engine/rows/row_index.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "core/device/copy_bytes.h"

namespace hctr {

RowIndex::RowIndex(const RowArrays& arrays, int64_t most_keys, size_t most_scratch)
    : runtime_(arrays.runtime()),
      entries_(runtime_.device(),
               std::max(static_cast<size_t>(entries_for(most_keys)) * sizeof(ops::IndexEntry), most_scratch)),
      state_(runtime_.device(), sizeof(ops::IndexState)),
      host_word_(runtime_.device(), sizeof(uint64_t)),
      left_(reinterpret_cast<const uint8_t*>(arrays.left())) {
  view_.row_keys = arrays.keys();
  view_.row_slots = arrays.slots();
  view_.entries = reinterpret_cast<ops::IndexEntry*>(entries_.data());
  view_.state = reinterpret_cast<ops::IndexState*>(state_.data());
}

int64_t RowIndex::entries_for(int64_t keys) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(4, keys + (keys + 2) / 3))));
}

RowIndex::Progress RowIndex::progress() const {
  const uint64_t word = std::atomic_ref<uint64_t>(*host_word()).load(std::memory_order_acquire);
  return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
}

void RowIndex::tell_host(const Progress& now) {
  std::atomic_ref<uint64_t>(*host_word())
      .store(static_cast<uint64_t>(now.batches) << 32 | now.rows, std::memory_order_release);
}

RowIndex::Progress RowIndex::wait_for_all() {
  runtime_.prepare_stream().synchronize();
  runtime_.compute_stream().synchronize();
  const Progress now = progress();
  batches_ = now.batches;  // no batch is queued any more
  return now;
}

ops::IndexState RowIndex::state() {
  wait_for_all();
  ops::IndexState state;
  copy_bytes(runtime_.compute_stream(), &state, state_.data(), sizeof state);
  runtime_.compute_stream().synchronize();
  return state;
}

void RowIndex::put_state(const ops::IndexState& now) {
  copy_bytes(runtime_.compute_stream(), state_.data(), &now, sizeof now);
}

void RowIndex::set_state(const ops::IndexState& now) {
  put_state(now);
  runtime_.compute_stream().synchronize();
  tell_host({now.batches, now.rows});
}

void RowIndex::set_bytes(std::ptrdiff_t offset, const void* value, size_t bytes) {
  copy_bytes(runtime_.compute_stream(), state_.data() + offset, value, bytes);
  runtime_.compute_stream().synchronize();
}

bool RowIndex::has_room(int64_t keys) const {
  // This may underestimate the room: a row added since read_marks() may have reused a tombstone that marks_ still
  // counts.
  return keys <= most_keys() && keys + marks_ <= entry_count_ / 8 * 7;
}

void RowIndex::grow(int64_t keys) {
  const int64_t entries = entries_for(keys);
  if (entries <= entry_count_) return;
  entries_.grow(static_cast<size_t>(entries) * sizeof(ops::IndexEntry));
  set(&ops::IndexState::mask, static_cast<uint64_t>(entries - 1));
  entry_count_ = entries;
  build();
}

void RowIndex::build() { build(runtime_.compute_stream()); }

void RowIndex::build(StreamRef stream) {
  Context ctx(runtime_, stream);
  zero_bytes(ctx.stream(), entries_.data(), static_cast<size_t>(entry_count_) * sizeof(ops::IndexEntry));
  zero_bytes(ctx.stream(), state_.data() + offsetof(ops::IndexState, marks), sizeof(uint32_t));
  ops::index_rebuild(ctx, view_, left_);
  ctx.stream().synchronize();
  marks_ = 0;
  ++builds_;
}

void RowIndex::read_marks(StreamRef stream) {
  uint32_t marks = 0;
  copy_bytes(stream, &marks, state_.data() + offsetof(ops::IndexState, marks), sizeof marks);
  stream.synchronize();
  marks_ = marks;
}

}  // namespace hctr
