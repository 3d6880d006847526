#include "prepare/preprocess/dense_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hctr {
namespace {

/// Logarithms of small whole numbers, which most counts are, come from a table.
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

double DenseStatistics::deviation() const { return count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0; }

void DenseStatistics::merge(const DenseStatistics& other) {
  if (other.count == 0) return;
  const auto a = static_cast<double>(count), b = static_cast<double>(other.count);
  const double apart = other.mean - mean;
  squares += other.squares + apart * apart * a * b / (a + b);
  mean += apart * b / (a + b);
  count += other.count;
  least = std::min(least, other.least);
  most = std::max(most, other.most);
}

DenseStatistics statistics_of(std::span<const double> values) {
  DenseStatistics found;
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++found.count;
    found.least = std::min(found.least, value);
    found.most = std::max(found.most, value);
  }
  if (found.count == 0) return found;
  found.mean = sum / static_cast<double>(found.count);
  for (const double value : values)
    if (!std::isnan(value)) found.squares += (value - found.mean) * (value - found.mean);
  return found;
}

void DenseColumn::add(std::span<const double> values, bool log) {
  const DenseStatistics here = statistics_of(values);
  missing += static_cast<int64_t>(values.size()) - here.count;
  raw.merge(here);
  if (!log) return scaled.merge(here);
  std::vector<double> logarithms(values.size());
  std::transform(values.begin(), values.end(), logarithms.begin(),
                 [](double value) { return std::isnan(value) ? value : logarithm(value); });
  scaled.merge(statistics_of(logarithms));
}

void DenseColumn::merge(const DenseColumn& other) {
  raw.merge(other.raw);
  scaled.merge(other.scaled);
  missing += other.missing;
}

Json DenseColumn::describe(const std::string& name) const {
  Json json(Json::Object{{"name", name}, {"missing", missing}});
  if (raw.count > 0)
    json.set("min", raw.least).set("max", raw.most).set("mean", raw.mean).set("deviation", raw.deviation());
  return json;
}

DenseScaling::DenseScaling(const DenseOptions& options, const DenseColumn& column)
    : log_(options.log), fill_(options.fill_with_mean ? column.raw.mean : options.fill) {
  if (options.normalize == Normalize::none) return;
  DenseStatistics all = column.scaled;
  all.add_equal(log_ ? logarithm(fill_) : fill_, column.missing);
  if (all.count == 0) return;
  const bool range = options.normalize == Normalize::minmax;
  const double width = range ? all.most - all.least : all.deviation();
  shift_ = range ? all.least : all.mean;
  scale_ = width > 0 ? 1 / width : 0;  // a constant column becomes 0
}

float DenseScaling::operator()(double value) const {
  const double there = std::isnan(value) ? fill_ : value;
  return static_cast<float>(((log_ ? logarithm(there) : there) - shift_) * scale_);
}

}  // namespace hctr
