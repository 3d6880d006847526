// Series of numbers over time, reduced to the resolution of a drawing.
#pragma once

#include <cstddef>
#include <vector>

#include "config/json.h"

namespace hctr {

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};
using Series = std::vector<Point>;

/// Reduces a series to the minimum and maximum of each of `buckets` equally long parts, plus the first and the last
/// point, in order. No extreme value is lost. A short series is unchanged. One pass.
Series downsample(const Series&, size_t buckets);

/// JSON {"x": [...], "y": [...]}, with seven significant digits.
Json to_json(const Series&);
/// A number with seven significant digits.
double rounded_for_page(double);

}  // namespace hctr
