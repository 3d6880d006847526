#include "report/series.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace hctr {

Series downsample(const Series& series, size_t buckets) {
  if (series.size() <= 2 * buckets + 2) return series;
  Series kept = {series.front()};
  const size_t inner = series.size() - 2;
  for (size_t b = 0; b < buckets; ++b) {
    const auto begin = series.begin() + 1 + static_cast<std::ptrdiff_t>(inner * b / buckets);
    const auto end = series.begin() + 1 + static_cast<std::ptrdiff_t>(inner * (b + 1) / buckets);
    const auto [low, high] = std::minmax_element(begin, end, [](Point l, Point r) { return l.y < r.y; });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  kept.push_back(series.back());
  return kept;
}

double rounded_for_page(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return std::strtod(text, nullptr);
}

Json to_json(const Series& series) {
  Json::Array x, y;
  for (const Point& point : series) {
    x.emplace_back(rounded_for_page(point.x));
    y.emplace_back(rounded_for_page(point.y));
  }
  return Json(Json::Object{{"x", Json(std::move(x))}, {"y", Json(std::move(y))}});
}

}  // namespace hctr
