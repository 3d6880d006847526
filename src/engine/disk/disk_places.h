// The free and used places of a file of fixed-size records.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace hctr {

/// Places are assigned in order, segment by segment, so that records written together are adjacent and a disk gets long
/// writes. A segment is reused once all of its places are free; nearly empty segments can be emptied.
class DiskPlaces {
 public:
  /// `segment`: the number of adjacent places in a segment.
  explicit DiskPlaces(uint32_t segment) : segment_(segment) {}

  uint32_t segment() const { return segment_; }
  /// The places of the file so far, and the free ones among them.
  int64_t total() const { return static_cast<int64_t>(used_.size()); }
  int64_t free() const { return free_; }
  /// The number of places that take_in_order() can return before the file grows.
  int64_t in_order() const;

  /// Takes at most `count` places: in empty segments, then at most `more` after the end of the file.
  std::vector<uint32_t> take_in_order(int64_t count, int64_t more);
  /// Takes `count` free places anywhere, and appends them to `to`. At least this many must be free.
  void take_any(int64_t count, std::vector<uint32_t>& to);
  /// Takes `count` free places before `end`. At least this many must be free.
  std::vector<uint32_t> take_before(int64_t end, int64_t count);
  void give_back(uint32_t place);
  /// From now on, places that are in use now are not free before release(), even if they are returned.
  void hold() { held_ = used_; }
  void release();
  /// Removes the free places at the end of the file, and returns their number.
  int64_t drop_end();
  /// The segments with the fewest used places that together have this many free ones; only segments that are at least a
  /// quarter free and not being filled.
  std::vector<uint32_t> emptiest(int64_t free) const;

 private:
  void take(uint32_t place);
  bool being_filled(uint32_t segment) const { return next_ < end_ && next_ / segment_ == segment; }
  bool whole(uint32_t segment) const { return int64_t{segment + 1} * segment_ <= total(); }

  uint32_t segment_;
  int64_t free_ = 0;
  std::vector<bool> used_;
  std::vector<bool> held_;            // by place; empty: none is held
  std::vector<uint32_t> given_back_;  // of these
  std::vector<uint32_t> taken_;       // used places of each segment
  std::set<uint32_t> empty_;          // segments without used places
  uint32_t next_ = 0, end_ = 0;       // the rest of the segment that is being filled
  uint32_t last_hole_ = 0;            // where take_any() continues
};

}  // namespace hctr
