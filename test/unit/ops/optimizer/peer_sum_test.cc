// Sums the arrays of two ranks, on every device. Both ranks use the same device.
#include "ops/optimizer/peer_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "support/values_on_device.h"

namespace hctr::test {
namespace {

TEST(PeerSum, TwoRanksHaveTheSumOfBothAndNothingElseIsWritten) {
  for (const Device device : devices())
    for (const int64_t n : {1, 2, 7, 8, 29, 4096, 70001})
      // number of elements before the array, so that some arrays do not start at a multiple of four floats
      for (const int64_t skipped : {0, 1, 4}) {
        SCOPED_TRACE(cat(n, " elements after ", skipped, " on ", to_string(device)));
        Context ctx(runtime_of(device), runtime_of(device).compute_stream());
        std::vector<float> a, b;
        for (int64_t i = 0; i < n + skipped + 3; ++i) {
          a.push_back(static_cast<float>(i % 1001) / 7 - 3);
          b.push_back(static_cast<float>(i % 37) / 3 - 5);
        }
        const ValuesOnDevice<float> first(device, a), second(device, b);
        const auto part = [&](const ValuesOnDevice<float>& of) {
          return Tensor(reinterpret_cast<std::byte*>(of.data() + skipped), TensorSpec(DType::f32, {n}), device);
        };
        const ValuesOnDevice<uint32_t> aborted(device, std::vector<uint32_t>{1}), going(device, {0});
        ops::sum_half(ctx, part(first), second.data() + skipped, false, aborted.data(), {});
        EXPECT_EQ(first.host(), a) << "after an abort";
        ops::sum_half(ctx, part(first), second.data() + skipped, false, going.data(), {});
        ops::sum_half(ctx, part(second), first.data() + skipped, true, nullptr, {});
        for (size_t i = 0; i < a.size(); ++i) {
          const auto at = static_cast<int64_t>(i);
          if (at >= skipped && at < skipped + n) a[i] = b[i] = a[i] + b[i];
        }
        EXPECT_EQ(first.host(), a);
        EXPECT_EQ(second.host(), b);
      }
}

/// Each rank checks its half of the sums for overflow. It does not check the summands.
TEST(PeerSum, SumsThatDoNotFitAreFound) {
  constexpr int64_t kElements = 4099;
  constexpr float kMost = 100;
  for (const Device device : devices())
    for (const bool second : {false, true})
      for (const auto& [mine, theirs, found] :
           {std::tuple{60.0f, 39.0f, 0.0f}, std::tuple{60.0f, 41.0f, 1.0f}, std::tuple{-60.0f, -41.0f, 1.0f},
            std::tuple{150.0f, -60.0f, 0.0f}, std::tuple{1.0f, NAN, 1.0f}, std::tuple{INFINITY, -INFINITY, 1.0f}})
        for (const int64_t at :
             {int64_t{0}, ops::first_half(kElements) - 1, ops::first_half(kElements), kElements - 1}) {
          SCOPED_TRACE(cat(mine, " + ", theirs, " at ", at, ", half ", second, " on ", to_string(device)));
          Context ctx(runtime_of(device), runtime_of(device).compute_stream());
          std::vector<float> a(kElements, 1), b(kElements, 2);
          a[static_cast<size_t>(at)] = mine, b[static_cast<size_t>(at)] = theirs;
          const ValuesOnDevice<float> first(device, a), other(device, b), flag(device, {0});
          ops::sum_half(ctx, first.tensor({kElements}), other.data(), second, nullptr, {kMost, flag.data()});
          const bool searched = (at >= ops::first_half(kElements)) == second;
          EXPECT_EQ(flag.host()[0], searched ? found : 0);
        }
}

}  // namespace
}  // namespace hctr::test
