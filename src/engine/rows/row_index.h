// The hash index of a row store, its state on the device, and the host's view of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/rows/row_arrays.h"
#include "ops/embedding/hash_index.h"

namespace hctr {

/// Finds the rows of keys, and counts rows and batches. It grows in place, so that recorded work stays valid. For a
/// table that finds rows by arithmetic it has no entries, but still counts rows.
class RowIndex {
 public:
  /// For the rows of these arrays. Reserves addresses for the entries of `most_keys` keys, and for `most_scratch`
  /// bytes, see reserve_scratch().
  RowIndex(const RowArrays&, int64_t most_keys, size_t most_scratch);

  /// Pointers for kernels.
  const ops::HashIndex& view() const { return view_; }
  /// Row 1 belongs to no key: it is shared by all keys that get no row.
  void share_first_row() { view_.first_row = 2; }
  int64_t shared_rows() const { return view_.first_row - 1; }

  /// The device's last report to the host.
  struct Progress {
    uint32_t batches, rows;
  };
  /// Does not wait.
  Progress progress() const;
  /// Where index_close_batch reports it.
  uint64_t* host_word() const { return reinterpret_cast<uint64_t*>(host_word_.data()); }
  void tell_host(const Progress&);
  /// Waits for queued work; nothing is queued afterwards.
  Progress wait_for_all();
  /// The same.
  ops::IndexState state();
  /// Sets the state on the device, and the host's number of rows. Waits for the compute stream.
  void set_state(const ops::IndexState&);
  /// Sets it only on the device, after the queued work of the compute stream.
  void put_state(const ops::IndexState&);
  /// Sets one field of it. Waits for the compute stream.
  template <class T>
  void set(T ops::IndexState::*field, T value) {
    ops::IndexState any;
    set_bytes(reinterpret_cast<const std::byte*>(&(any.*field)) - reinterpret_cast<const std::byte*>(&any), &value,
              sizeof value);
  }

  /// Batches with reserved rows, modulo 2^32 like all counts of batches.
  uint32_t reserved_batches() const { return batches_; }
  void set_reserved_batches(uint32_t batches) { batches_ = batches; }
  void count_batch() { ++batches_; }
  /// Those of them that the device had not prepared by then.
  int64_t queued(const Progress& then) const { return static_cast<int64_t>(batches_ - then.batches); }

  /// Entries for this many keys. At most three quarters of them are used, so that searches stay short.
  static int64_t entries_for(int64_t keys);
  int64_t entries() const { return entry_count_; }
  /// The number of keys that the entries suffice for.
  int64_t most_keys() const { return entry_count_ / 4 * 3; }
  /// Whether there are entries for this many keys, in addition to marks of removed keys.
  bool has_room(int64_t keys) const;
  bool has_marks() const { return marks_ > 0; }
  /// Allocates entries for this many keys and enters every row again, unless there are enough. Waits for it.
  void grow(int64_t keys);
  /// Empties the index, and enters every row that is not evicted. Waits for it.
  void build();
  void build(StreamRef);
  /// The number of rebuilds.
  int64_t builds() const { return builds_; }
  /// After index_remove() is queued on the stream: reads the number of entries with marks. Waits for it.
  void read_marks(StreamRef);

  /// The memory of entries can be used as scratch before the index is rebuilt. Allocates this many bytes of it.
  void reserve_scratch(size_t bytes) { entries_.grow(bytes); }
  std::byte* scratch() const { return entries_.data(); }
  /// Allocated bytes of entries, or scratch; the granularity of allocations.
  size_t bytes() const { return entries_.bytes(); }
  size_t granularity() const { return entries_.granularity(); }

 private:
  void set_bytes(std::ptrdiff_t offset, const void* value, size_t bytes);

  Runtime& runtime_;
  ReservedBuffer entries_;
  Buffer state_;
  HostBuffer host_word_;
  ops::HashIndex view_;
  const uint8_t* left_;  // see RowArrays
  int64_t entry_count_ = 0;
  uint32_t batches_ = 0;
  int64_t marks_ = 0;  // upper bound of entries with marks
  int64_t builds_ = 0;
};

}  // namespace hctr
