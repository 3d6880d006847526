// A buffer of records that are read before the step that needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace hctr {

/// Maps a record's place in the file to a buffer slot. A reader reserves a slot, reads the record into the slot's
/// memory, and publishes the slot. If the record changes, or another record gets its place, the buffered record is
/// dropped, even while it is being read. Not thread-safe, but threads may access the memory of reserved and taken slots
/// without a lock.
class FetchedRecords {
 public:
  explicit FetchedRecords(int64_t record_bytes) : record_bytes_(static_cast<size_t>(record_bytes)) {}

  /// Grows the buffer to `records` slots; never shrinks.
  void grow(int64_t records);
  int64_t room() const { return static_cast<int64_t>(slots_.size()); }
  static constexpr int64_t bytes_beside_record() { return kBytesOfEntry; }

  /// Starts a new batch. If the buffer is full, reserve() drops records of batches at least kOldBatches old.
  void begin_batch() { ++batch_; }
  /// True if the record is in the buffer, or is being read into it.
  bool has(uint32_t place) const { return at_.contains(place); }
  static constexpr uint32_t kNone = UINT32_MAX;
  /// Reserves a slot for a new record. Returns kNone if the buffer is full.
  uint32_t reserve(uint32_t place);
  std::byte* memory(uint32_t slot) const { return slots_[slot].memory; }
  /// Marks a record as read. `good` = false drops the record.
  void publish(uint32_t slot, bool good);
  /// Returns the slot of a record; the caller owns the slot until release(). Returns kNone if the record is not in the
  /// buffer.
  uint32_t take(uint32_t place);
  void release(uint32_t slot) { free_.push_back(slot); }
  /// Drops the record of a place that now has another record, or none.
  void drop(uint32_t place);

 private:
  static constexpr int64_t kBytesOfEntry = 80;
  static constexpr uint32_t kOldBatches = 8;
  struct Slot {
    std::byte* memory;
    uint32_t place = 0, batch = 0;
    bool ready = false, dropped = false;
  };
  void drop_old();

  size_t record_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> pieces_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::unordered_map<uint32_t, uint32_t> at_;  // place -> slot
  uint32_t batch_ = 0, emptied_ = 0;           // emptied_: the batch in which drop_old() ran last
};

}  // namespace hctr
