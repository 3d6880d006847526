// Compares tensors up to rounding.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/rig.h"

namespace hctr::test {

/// Expects that each element a of output `name` is near element b of output `other`: |a - b| <= unit * (|b| + least).
/// `unit` is the spacing of two-byte values, or 1e-5 for f32, because f32 sums may be computed in another order.
/// `columns`: row length, for messages. Call after Rig::fetch().
inline void expect_near(const Rig& t, const std::string& name, const std::string& other, int64_t columns,
                        double least = 1e-2) {
  const DType dtype = t.dtype();
  const double unit = dtype == DType::f32 ? 1e-5 : dtype == DType::bf16 ? std::exp2(-7) : std::exp2(-10);
  const std::vector<double> one = t.values(name), two = t.values(other);
  ASSERT_EQ(one.size(), two.size()) << name;
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < one.size(); ++i)
    if (!(std::abs(one[i] - two[i]) <= unit * (std::abs(two[i]) + least)) && wrong++ == 0) first = i;
  EXPECT_EQ(wrong, 0u) << name << ", first at " << first / static_cast<size_t>(columns) << ", "
                       << first % static_cast<size_t>(columns) << ": " << one[first] << ", expected " << two[first];
}

}  // namespace hctr::test
