// Numbers over time, and as many of them as a drawing needs.
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

/// The smallest and the largest value of each of `buckets` equally long pieces of the series, in their order, and its
/// ends: no extreme is lost. A series that is short enough stays as it is. Cost: one pass.
Series downsample(const Series&, size_t buckets);

/// {"x": [...], "y": [...]}, with seven significant digits.
Json to_json(const Series&);
/// A number with seven significant digits.
double rounded_for_page(double);

}  // namespace hctr
