// Which places of a file of fixed-size records are taken.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace hctr {

/// Places are handed out in order, segment after segment, so that what is written at a time lies together and a disk
/// gets long writes. A segment is used again once all of its places are free; those that are nearly so can be emptied.
class DiskPlaces {
 public:
  /// `segment`: places that lie together.
  explicit DiskPlaces(uint32_t segment) : segment_(segment) {}

  uint32_t segment() const { return segment_; }
  /// Places that the file has had so far, and those of them that are free.
  int64_t total() const { return static_cast<int64_t>(used_.size()); }
  int64_t free() const { return free_; }
  /// Places that take_in_order() has before the file becomes longer.
  int64_t in_order() const;

  /// Takes at most `count` places: of empty segments, and then, at most `more`, behind the end of the file.
  std::vector<uint32_t> take_in_order(int64_t count, int64_t more);
  /// Takes `count` free places, of which there are as many, wherever they are, and appends them to `to`.
  void take_any(int64_t count, std::vector<uint32_t>& to);
  /// The same of free places before `end`, of which there are as many.
  std::vector<uint32_t> take_before(int64_t end, int64_t count);
  void give_back(uint32_t place);
  /// Places that are taken now and given back later are not free before release().
  void hold() { held_ = used_; }
  void release();
  /// Forgets the free places at the end of the file, and returns how many.
  int64_t drop_end();
  /// The segments with the fewest taken places, which together have that many free ones. Only those that are at least a
  /// quarter free, and not those that are being filled.
  std::vector<uint32_t> emptiest(int64_t free) const;

 private:
  void take(uint32_t place);
  bool being_filled(uint32_t segment) const { return next_ < end_ && next_ / segment_ == segment; }
  bool whole(uint32_t segment) const { return int64_t{segment + 1} * segment_ <= total(); }

  uint32_t segment_;
  int64_t free_ = 0;
  std::vector<bool> used_;
  std::vector<bool> held_;            // by place; empty: none is
  std::vector<uint32_t> given_back_;  // of these
  std::vector<uint32_t> taken_;       // of each segment
  std::set<uint32_t> empty_;          // whole segments without a taken place
  uint32_t next_ = 0, end_ = 0;       // what is left of the segment that is being filled
  uint32_t last_hole_ = 0;            // where take_any() goes on
};

}  // namespace hctr
