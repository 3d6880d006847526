#include "formats/model/table_summary.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace hctr {
namespace {

bool larger(const TableSummary::Row& a, const TableSummary::Row& b) {
  return std::tuple(-a.norm, a.slot, a.key) < std::tuple(-b.norm, b.slot, b.key);
}

}  // namespace

void TableSummary::add(const SparseRows& part) {
  for (size_t i = 0; i < part.keys.size(); ++i) {
    double squares = 0;
    for (int64_t e = 0; e < dim_; ++e) {
      const double x = static_cast<double>(part.vectors[i * static_cast<size_t>(dim_) + static_cast<size_t>(e)]);
      squares += x * x;
    }
    const Row row{part.keys[i], part.slots.empty() ? 0 : part.slots[i], std::sqrt(squares)};
    ++rows_;
    ++per_slot_[row.slot];
    smallest_key_ = std::min(smallest_key_, row.key);
    largest_key_ = std::max(largest_key_, row.key);
    if (!std::isfinite(row.norm)) {
      ++not_finite_;
      continue;
    }
    const bool first = rows_ - not_finite_ == 1;
    smallest_norm_ = first ? row.norm : std::min(smallest_norm_, row.norm);
    largest_norm_ = std::max(largest_norm_, row.norm);
    sum_ += row.norm;
    if (row.norm == 0)
      ++zeros_;
    else
      ++fine_[static_cast<int>(std::floor(kFine * std::log2(row.norm)))];
    largest_.push_back(row);
    std::push_heap(largest_.begin(), largest_.end(), larger);
    if (static_cast<int64_t>(largest_.size()) > top_) {
      std::pop_heap(largest_.begin(), largest_.end(), larger);
      largest_.pop_back();
    }
  }
}

double TableSummary::mean_norm() const {
  const int64_t counted = rows_ - not_finite_;
  return counted > 0 ? sum_ / static_cast<double>(counted) : 0;
}

double TableSummary::median_norm() const {
  int64_t below = zeros_;
  const int64_t half = (rows_ - not_finite_) / 2;
  if (below > half) return 0;
  for (const auto& [bin, rows] : fine_) {
    below += rows;
    if (below > half) return std::clamp(std::exp2((bin + 0.5) / kFine), smallest_norm_, largest_norm_);
  }
  return largest_norm_;
}

std::vector<TableSummary::Bin> TableSummary::histogram() const {
  std::map<int, int64_t> doublings;
  for (const auto& [bin, rows] : fine_)
    doublings[static_cast<int>(std::floor(static_cast<double>(bin) / kFine))] += rows;
  std::vector<Bin> bins;
  if (doublings.empty()) return bins;
  for (int e = doublings.begin()->first; e <= doublings.rbegin()->first; ++e)
    bins.push_back({e, doublings.contains(e) ? doublings[e] : 0});
  return bins;
}

std::vector<TableSummary::Row> TableSummary::largest() const {
  std::vector<Row> rows = largest_;
  std::sort(rows.begin(), rows.end(), larger);
  return rows;
}

}  // namespace hctr
