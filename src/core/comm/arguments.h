// Argument checks that all communicators share, and addresses of tensor elements.
#pragma once

#include "core/comm/communicator.h"

namespace hctr {

/// The address of element `i` of a dense tensor.
inline std::byte* element(const Tensor& tensor, int64_t i) {
  return tensor.bytes() + static_cast<size_t>(i) * size_of(tensor.dtype());
}

/// Checks the arguments of an all-to-all: one range per rank, each range within its tensor, dense tensors of equal
/// dtype and device. Errors: Error(bug).
inline void expect_ranges(const Tensor& in, const RankRanges& send, const Tensor& out, const RankRanges& receive,
                          int ranks) {
  expect_alike("all_to_all", {in, out});
  HCTR_EXPECT(in.dense() && out.dense(), "all_to_all() needs dense rows, found strided rows");
  const auto expect_within = [&](const RankRanges& ranges, const Tensor& tensor) {
    HCTR_EXPECT(ranges.begin.size() == static_cast<size_t>(ranks) && ranges.count.size() == ranges.begin.size(),
                "all_to_all of ", ranges.begin.size(), " ranges on ", ranks, " ranks");
    for (size_t r = 0; r < ranges.begin.size(); ++r)
      HCTR_EXPECT(
          ranges.begin[r] >= 0 && ranges.count[r] >= 0 && ranges.begin[r] + ranges.count[r] <= tensor.elements(),
          "all_to_all: range ", r, " begins at ", ranges.begin[r], " and has ", ranges.count[r],
          " elements, but the tensor has ", tensor.elements());
  };
  expect_within(send, in);
  expect_within(receive, out);
}

/// Checks that both tensors are dense and have equal dtype and device, and that `large` has `ranks` times the elements
/// of `small`. Errors: Error(bug).
inline void expect_equal_ranges(const char* call, const Tensor& small, const Tensor& large, int ranks) {
  expect_alike(call, {small, large});
  HCTR_EXPECT(small.dense() && large.dense() && small.elements() * ranks == large.elements(), call, ": ",
              to_string(small.shape()), " and ", to_string(large.shape()), " on ", ranks, " ranks");
}

}  // namespace hctr
