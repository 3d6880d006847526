// The hash index of a row store: its entries and state on the device, and the host's view of the state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/rows/row_arrays.h"
#include "ops/embedding/hash_index.h"

namespace hctr {

/// Maps keys to rows, and counts rows and batches. The index grows in place, so recorded work stays valid. If a table
/// finds rows by arithmetic, the index has no entries but still counts rows.
class RowIndex {
 public:
  /// Indexes the rows of `RowArrays`. Reserves addresses for the entries of `most_keys` keys, and for at least
  /// `most_scratch` bytes (see reserve_scratch()).
  RowIndex(const RowArrays&, int64_t most_keys, size_t most_scratch);

  /// Pointers for kernels.
  const ops::HashIndex& view() const { return view_; }
  /// Makes row 1 the shared row: no key owns the row, and all keys without a row use it.
  void share_first_row() { view_.first_row = 2; }
  int64_t shared_rows() const { return view_.first_row - 1; }

  /// The last counts that the device has reported to the host.
  struct Progress {
    uint32_t batches, rows;
  };
  /// Returns the last report without waiting.
  Progress progress() const;
  /// The host address to which index_close_batch() reports.
  uint64_t* host_word() const { return reinterpret_cast<uint64_t*>(host_word_.data()); }
  void tell_host(const Progress&);
  /// Waits for all queued work and returns the final report.
  Progress wait_for_all();
  /// Waits for all queued work and returns the state of the index.
  ops::IndexState state();
  /// Sets the state on the device and the counts that progress() returns. Waits for the compute stream.
  void set_state(const ops::IndexState&);
  /// Sets the state on the device only, in stream order on the compute stream.
  void put_state(const ops::IndexState&);
  /// Sets one field of the state on the device. Waits for the compute stream.
  template <class T>
  void set(T ops::IndexState::*field, T value) {
    ops::IndexState any;
    set_bytes(reinterpret_cast<const std::byte*>(&(any.*field)) - reinterpret_cast<const std::byte*>(&any), &value,
              sizeof value);
  }

  /// The number of batches for which rows were reserved. All counts of batches are modulo 2^32.
  uint32_t reserved_batches() const { return batches_; }
  void set_reserved_batches(uint32_t batches) { batches_ = batches; }
  void count_batch() { ++batches_; }
  /// How many of the reserved batches the device had not prepared yet when it reported `then`.
  int64_t queued(const Progress& then) const { return static_cast<int64_t>(batches_ - then.batches); }

  /// The number of entries for `keys` keys. The load factor is at most 3/4, which keeps probe sequences short.
  static int64_t entries_for(int64_t keys);
  int64_t entries() const { return entry_count_; }
  /// The maximum number of keys for the current entries.
  int64_t most_keys() const { return entry_count_ / 4 * 3; }
  /// Whether the entries suffice for `keys` keys in addition to the tombstones of removed keys.
  bool has_room(int64_t keys) const;
  bool has_marks() const { return marks_ > 0; }
  /// Ensures entries for `keys` keys. If the index has too few entries, allocates more, rebuilds the index and waits.
  void grow(int64_t keys);
  /// Rebuilds the index from all rows that are not evicted. Waits for the stream.
  void build();
  void build(StreamRef);
  /// The number of rebuilds so far.
  int64_t builds() const { return builds_; }
  /// Reads the number of tombstones. Call after index_remove() is queued on the stream. Waits for the stream.
  void read_marks(StreamRef);

  /// The memory of the entries can serve as scratch before the index is rebuilt. reserve_scratch() allocates `bytes`
  /// bytes.
  void reserve_scratch(size_t bytes) { entries_.grow(bytes); }
  std::byte* scratch() const { return entries_.data(); }
  /// bytes(): allocated bytes of entries or scratch.
  size_t bytes() const { return entries_.bytes(); }
  size_t granularity() const { return entries_.granularity(); }

 private:
  void set_bytes(std::ptrdiff_t offset, const void* value, size_t bytes);

  Runtime& runtime_;
  ReservedBuffer entries_;
  Buffer state_;
  HostBuffer host_word_;
  ops::HashIndex view_;
  const uint8_t* left_;  // see RowArrays::left()
  int64_t entry_count_ = 0;
  uint32_t batches_ = 0;
  int64_t marks_ = 0;  // upper bound of the number of tombstones
  int64_t builds_ = 0;
};

}  // namespace hctr
