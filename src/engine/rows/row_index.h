// The hash index of a row store, its state on the device, and what the host knows of that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/rows/row_arrays.h"
#include "ops/embedding/hash_index.h"

namespace hctr {

/// Finds the rows of keys, and counts rows and batches. It grows in place, so that recorded work stays valid. A table
/// that finds its rows by arithmetic has no entries; its rows are counted here all the same.
class RowIndex {
 public:
  /// Of the rows of these arrays. Reserves addresses for the entries of `most_keys` keys, and for `most_scratch` bytes,
  /// see reserve_scratch().
  RowIndex(const RowArrays&, int64_t most_keys, size_t most_scratch);

  /// As kernels see it.
  const ops::HashIndex& view() const { return view_; }
  /// Row 1 belongs to no key, but to all that get no row of their own.
  void share_first_row() { view_.first_row = 2; }
  int64_t shared_rows() const { return view_.first_row - 1; }

  /// What the device last reported to the host.
  struct Progress {
    uint32_t batches, rows;
  };
  /// Does not wait.
  Progress progress() const;
  /// Where index_close_batch reports it.
  uint64_t* host_word() const { return reinterpret_cast<uint64_t*>(host_word_.data()); }
  void tell_host(const Progress&);
  /// Waits for queued work. Nothing is queued then.
  Progress wait_for_all();
  /// The same.
  ops::IndexState state();
  /// Sets the state on the device, and tells the host the number of rows. Waits for the compute stream.
  void set_state(const ops::IndexState&);
  /// Sets it on the device alone, behind the work of the compute stream.
  void put_state(const ops::IndexState&);
  /// Sets one field of it. Waits for the compute stream.
  template <class T>
  void set(T ops::IndexState::*field, T value) {
    ops::IndexState any;
    set_bytes(reinterpret_cast<const std::byte*>(&(any.*field)) - reinterpret_cast<const std::byte*>(&any), &value,
              sizeof value);
  }

  /// Batches that rows have been reserved for, modulo 2^32 as all counts of batches.
  uint32_t reserved_batches() const { return batches_; }
  void set_reserved_batches(uint32_t batches) { batches_ = batches; }
  void count_batch() { ++batches_; }
  /// Those of them that the device had not prepared by then.
  int64_t queued(const Progress& then) const { return static_cast<int64_t>(batches_ - then.batches); }

  /// Entries for so many keys. At most three quarters of them are used, so that searches stay short.
  static int64_t entries_for(int64_t keys);
  int64_t entries() const { return entry_count_; }
  /// Keys that these are enough for.
  int64_t most_keys() const { return entry_count_ / 4 * 3; }
  /// Whether there are entries for so many keys, marks of keys that have gone counted.
  bool has_room(int64_t keys) const;
  bool has_marks() const { return marks_ > 0; }
  /// Gets entries for so many keys, and enters every row anew, unless there are enough. Waits for it.
  void grow(int64_t keys);
  /// Empties the index, and enters every row that has not left. Waits for it.
  void build();
  void build(StreamRef);
  /// Times that it was built.
  int64_t builds() const { return builds_; }
  /// Once index_remove() is queued on the stream: reads how many entries have marks. Waits for it.
  void read_marks(StreamRef);

  /// The memory of the entries is scratch where the index is built anew afterwards. Gets so many bytes of it.
  void reserve_scratch(size_t bytes) { entries_.grow(bytes); }
  std::byte* scratch() const { return entries_.data(); }
  /// Bytes of entries, or scratch, that have memory; the steps in which they get it.
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
  int64_t marks_ = 0;  // at most so many entries have marks
  int64_t builds_ = 0;
};

}  // namespace hctr
