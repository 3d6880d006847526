#include "formats/model/access_stats_summary.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace hctr {
namespace {

bool hotter(const formats::RowAccess& a, const formats::RowAccess& b) {
  return std::tuple(b.occurrences, a.slot, a.key) < std::tuple(a.occurrences, b.slot, b.key);
}

void count_in(std::vector<int64_t>& rows_by_width, uint64_t number) {
  const auto width = static_cast<size_t>(std::bit_width(number));
  if (width >= rows_by_width.size()) rows_by_width.resize(width + 1);
  ++rows_by_width[width];
}

}  // namespace

void AccessStatsSummary::add(const AccessStatsHead& head, std::span<const formats::RowAccess> rows) {
  rows_ += static_cast<int64_t>(rows.size());
  for (const formats::RowAccess& row : rows) {
    if (head.last_seen)
      // steps are counted modulo 2^32
      count_in(by_steps_unseen_, static_cast<uint32_t>(head.steps) - 1 - row.last_seen);
    if (!head.occurrences) continue;
    count_in(by_occurrences_, row.occurrences);
    occurrences_ += static_cast<int64_t>(row.occurrences);
    most_ = std::max(most_, static_cast<int64_t>(row.occurrences));
    hottest_.push_back(row);
    std::push_heap(hottest_.begin(), hottest_.end(), hotter);
    if (static_cast<int64_t>(hottest_.size()) > top_) {
      std::pop_heap(hottest_.begin(), hottest_.end(), hotter);
      hottest_.pop_back();
    }
  }
}

std::vector<AccessStatsSummary::Bin> AccessStatsSummary::bins(const std::vector<int64_t>& rows_by_width) {
  std::vector<Bin> bins;
  for (size_t width = 0; width < rows_by_width.size(); ++width)
    bins.push_back({width == 0 ? 0 : int64_t{1} << (width - 1), int64_t{1} << width, rows_by_width[width]});
  return bins;
}

std::vector<formats::RowAccess> AccessStatsSummary::hottest() const {
  std::vector<formats::RowAccess> rows = hottest_;
  std::sort(rows.begin(), rows.end(), hotter);
  return rows;
}

}  // namespace hctr
