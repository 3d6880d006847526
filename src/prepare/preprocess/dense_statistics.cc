#include "prepare/preprocess/dense_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hctr {
namespace {

/// Most counts are small whole numbers, whose logarithms come from a table.
double logarithm(double value) {
  constexpr size_t kTable = 1 << 13;
  static const std::vector<double> table = [] {
    std::vector<double> logs(kTable);
    for (size_t i = 0; i < kTable; ++i) logs[i] = std::log1p(static_cast<double>(i));
    return logs;
  }();
  if (!(value > 0)) return 0;
  if (value < static_cast<double>(kTable))
    if (const auto whole = static_cast<size_t>(value); static_cast<double>(whole) == value) return table[whole];
  return std::log1p(value);
}

}  // namespace

void DenseColumn::add(std::span<const double> values, bool log) {
  NumberStatistics here;
  missing += static_cast<int64_t>(values.size()) - here.add(values);
  raw.merge(here);
  if (!log) return scaled.merge(here);
  std::vector<double> logarithms(values.size());
  std::transform(values.begin(), values.end(), logarithms.begin(),
                 [](double value) { return std::isnan(value) ? value : logarithm(value); });
  scaled.add(logarithms);
}

void DenseColumn::merge(const DenseColumn& other) {
  raw.merge(other.raw);
  scaled.merge(other.scaled);
  missing += other.missing;
}

Json DenseColumn::describe(const std::string& name) const {
  Json json(Json::Object{{"name", name}, {"missing", missing}});
  if (raw.moments.count() > 0)
    json.set("min", raw.least)
        .set("max", raw.most)
        .set("mean", raw.moments.mean())
        .set("deviation", raw.moments.deviation());
  return json;
}

DenseScaling::DenseScaling(const DenseOptions& options, const DenseColumn& column)
    : log_(options.log), fill_(options.fill_with_mean ? column.raw.moments.mean() : options.fill) {
  if (options.normalize == Normalize::none) return;
  NumberStatistics all = column.scaled;
  if (const double fill = log_ ? logarithm(fill_) : fill_; column.missing > 0)
    all.merge({Moments(column.missing, fill, 0), fill, fill});
  if (all.moments.count() == 0) return;
  const bool range = options.normalize == Normalize::minmax;
  const double width = range ? all.most - all.least : all.moments.deviation();
  shift_ = range ? all.least : all.moments.mean();
  // a column that is constant in float precision becomes 0
  scale_ = width > 0 && std::isfinite(1 / width) ? 1 / width : 0;
}

float DenseScaling::operator()(double value) const {
  const double there = std::isnan(value) ? fill_ : value;
  return static_cast<float>(((log_ ? logarithm(there) : there) - shift_) * scale_);
}

}  // namespace hctr
