// The relative distance of two vectors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hctr::test {

/// The Euclidean distance |a - b| / |a|.
inline double distance_of(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}

}  // namespace hctr::test
