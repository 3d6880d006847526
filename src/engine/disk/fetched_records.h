// Records of a file, read before the step that needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace hctr {

/// Memory for records, each found by its place in the file. A reader reserves a slot, reads the record and publishes
/// it. Any change of a record, or of a place's owner, drops the record here, even while it is being read. One thread at
/// a time calls members; the memory of slots is accessed in between.
class FetchedRecords {
 public:
  explicit FetchedRecords(int64_t record_bytes) : record_bytes_(static_cast<size_t>(record_bytes)) {}

  /// Grows to this many records; never shrinks.
  void grow(int64_t records);
  int64_t room() const { return static_cast<int64_t>(slots_.size()); }
  static constexpr int64_t bytes_beside_record() { return kBytesOfEntry; }

  /// Starts the records of another batch. If room is needed, the oldest unused ones are dropped.
  void begin_batch() { ++batch_; }
  /// Whether the record is here or being read.
  bool has(uint32_t place) const { return at_.contains(place); }
  static constexpr uint32_t kNone = UINT32_MAX;
  /// A slot for a new record; kNone: no room.
  uint32_t reserve(uint32_t place);
  std::byte* memory(uint32_t slot) const { return slots_[slot].memory; }
  /// The record has been read. `good`: keep it.
  void publish(uint32_t slot, bool good);
  /// The slot of a record, owned by the caller until release(); kNone: not here.
  uint32_t take(uint32_t place);
  void release(uint32_t slot) { free_.push_back(slot); }
  /// The place has another record from now on, or none.
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
  std::unordered_map<uint32_t, uint32_t> at_;  // from places to slots
  uint32_t batch_ = 0, emptied_ = 0;           // emptied_: the batch in which old records were last dropped
};

}  // namespace hctr
