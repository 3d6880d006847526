#include "engine/disk/disk_places.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/expect.h"

namespace hctr {

void DiskPlaces::take(uint32_t place) {
  used_[place] = true;
  ++taken_[place / segment_];
  --free_;
}

int64_t DiskPlaces::in_order() const {
  return static_cast<int64_t>(end_ - next_) + static_cast<int64_t>(empty_.size()) * segment_;
}

std::vector<uint32_t> DiskPlaces::take_in_order(int64_t count, int64_t more) {
  std::vector<uint32_t> places;
  const auto wanted = static_cast<size_t>(count);
  while (places.size() < wanted && in_order() > 0) {
    if (next_ == end_) {
      next_ = *empty_.begin() * segment_;
      end_ = next_ + segment_;
      empty_.erase(empty_.begin());
    }
    if (!used_[next_]) {
      take(next_);
      places.push_back(next_);
    }
    ++next_;
  }
  for (; places.size() < wanted && more > 0; --more) {
    const auto place = static_cast<uint32_t>(used_.size());
    used_.push_back(false);
    ++free_;
    if (place % segment_ == 0) taken_.push_back(0);
    take(place);
    places.push_back(place);
  }
  return places;
}

void DiskPlaces::take_any(int64_t count, std::vector<uint32_t>& to) {
  HCTR_EXPECT(count <= free_, count, " places of ", free_, " free ones");
  for (; count > 0; ++last_hole_) {
    if (last_hole_ >= used_.size()) last_hole_ = 0;
    if (used_[last_hole_]) continue;
    empty_.erase(last_hole_ / segment_);
    take(last_hole_);
    to.push_back(last_hole_);
    --count;
  }
}

std::vector<uint32_t> DiskPlaces::take_before(int64_t end, int64_t count) {
  std::vector<uint32_t> places;
  for (uint32_t place = 0; place < end && static_cast<int64_t>(places.size()) < count; ++place) {
    if (used_[place]) continue;
    empty_.erase(place / segment_);
    take(place);
    places.push_back(place);
  }
  HCTR_EXPECT(static_cast<int64_t>(places.size()) == count, places.size(), " of ", count, " places before ", end);
  return places;
}

void DiskPlaces::give_back(uint32_t place) {
  HCTR_EXPECT(place < used_.size() && used_[place], "place ", place, " of ", used_.size(), " is not taken");
  if (place < held_.size() && held_[place]) return given_back_.push_back(place);
  const uint32_t segment = place / segment_;
  used_[place] = false;
  ++free_;
  if (--taken_[segment] == 0 && whole(segment) && !being_filled(segment)) empty_.insert(segment);
}

void DiskPlaces::release() {
  held_ = {};
  for (const uint32_t place : std::exchange(given_back_, {})) give_back(place);
}

int64_t DiskPlaces::drop_end() {
  const int64_t before = total();
  while (!used_.empty() && !used_.back()) {
    used_.pop_back();
    --free_;
  }
  const auto end = static_cast<uint32_t>(used_.size());
  taken_.resize((end + segment_ - 1) / segment_);
  while (!empty_.empty() && !whole(*empty_.rbegin())) empty_.erase(std::prev(empty_.end()));
  end_ = std::min(end_, end);
  next_ = std::min(next_, end_);
  return before - total();
}

std::vector<uint32_t> DiskPlaces::emptiest(int64_t free) const {
  std::vector<uint32_t> segments;
  const uint32_t most = segment_ - std::max<uint32_t>(1, segment_ / 4);
  for (uint32_t segment = 0; segment < taken_.size() && whole(segment); ++segment)
    if (taken_[segment] > 0 && taken_[segment] <= most && !being_filled(segment)) segments.push_back(segment);
  std::stable_sort(segments.begin(), segments.end(), [&](uint32_t a, uint32_t b) { return taken_[a] < taken_[b]; });
  size_t some = 0;
  for (int64_t found = 0; some < segments.size() && found < free; ++some)
    found += static_cast<int64_t>(segment_ - taken_[segments[some]]);
  segments.resize(some);
  return segments;
}

}  // namespace hctr
