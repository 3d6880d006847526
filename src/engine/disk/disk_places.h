// Allocates record numbers ("places") in a file of fixed-size records.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace hctr {

/// Places are allocated in order, segment by segment. Records written together are therefore adjacent, and the disk
/// gets long writes. A segment is reused once all its places are free. emptiest() finds segments worth emptying.
class DiskPlaces {
 public:
  /// `segment`: number of adjacent places per segment.
  explicit DiskPlaces(uint32_t segment) : segment_(segment) {}

  uint32_t segment() const { return segment_; }
  /// total(): number of places in the file so far. free(): how many of these places are free.
  int64_t total() const { return static_cast<int64_t>(used_.size()); }
  int64_t free() const { return free_; }
  /// The number of places that take_in_order() can return without growing the file.
  int64_t in_order() const;

  /// Allocates up to `count` places: first places of empty segments, then at most `more` new places at the end of the
  /// file.
  std::vector<uint32_t> take_in_order(int64_t count, int64_t more);
  /// Allocates `count` free places anywhere in the file and appends them to `to`. At least `count` places must be free.
  void take_any(int64_t count, std::vector<uint32_t>& to);
  /// Allocates `count` free places below `end`. At least `count` such places must be free.
  std::vector<uint32_t> take_before(int64_t end, int64_t count);
  void give_back(uint32_t place);
  /// Holds all places that are in use now. A held place that becomes free is not reused until release().
  void hold() { held_ = used_; }
  void release();
  /// Removes the free places at the end of the file and returns how many were removed.
  int64_t drop_end();
  /// Returns the segments with the fewest used places, in that order, until these segments have `free` free places in
  /// total. Omits segments of which less than a quarter is free, and the segment that is being filled.
  std::vector<uint32_t> emptiest(int64_t free) const;

 private:
  void take(uint32_t place);
  bool being_filled(uint32_t segment) const { return next_ < end_ && next_ / segment_ == segment; }
  bool whole(uint32_t segment) const { return int64_t{segment + 1} * segment_ <= total(); }

  uint32_t segment_;
  int64_t free_ = 0;
  std::vector<bool> used_;
  std::vector<bool> held_;            // [place]: whether the place is held; empty if no places are held
  std::vector<uint32_t> given_back_;  // held places that were freed
  std::vector<uint32_t> taken_;       // [segment]: number of used places
  std::set<uint32_t> empty_;          // segments without used places
  uint32_t next_ = 0, end_ = 0;       // [next_, end_): unallocated places of the segment that is being filled
  uint32_t last_hole_ = 0;            // position from which take_any() continues
};

}  // namespace hctr
