// What every communicator asks of the tensors it is given.
#pragma once

#include "comm/communicator.h"

namespace hctr {

/// Throws Error(bug) unless the parts lie in their tensors, one for each rank, and the tensors are dense and alike.
inline void expect_parts(const Parts& send, const Tensor& in, const Parts& receive, const Tensor& out, int ranks) {
  expect_alike("all_to_all", {in, out});
  HCTR_EXPECT(in.dense() && out.dense(), "all_to_all of strided rows");
  const auto lie_in = [&](const Parts& parts, const Tensor& tensor) {
    HCTR_EXPECT(parts.begin.size() == static_cast<size_t>(ranks) && parts.count.size() == parts.begin.size(),
                "all_to_all of ", parts.begin.size(), " parts on ", ranks, " ranks");
    for (size_t r = 0; r < parts.begin.size(); ++r)
      HCTR_EXPECT(parts.begin[r] >= 0 && parts.count[r] >= 0 && parts.begin[r] + parts.count[r] <= tensor.elements(),
                  "all_to_all: part ", r, " reaches from ", parts.begin[r], " over ", parts.count[r], " of ",
                  tensor.elements(), " elements");
  };
  lie_in(send, in);
  lie_in(receive, out);
}

/// Throws Error(bug) unless both are dense and alike, and `large` holds `ranks` times the elements of `small`.
inline void expect_shares(const char* call, const Tensor& small, const Tensor& large, int ranks) {
  expect_alike(call, {small, large});
  HCTR_EXPECT(small.dense() && large.dense() && small.elements() * ranks == large.elements(), call, ": ",
              to_string(small.shape()), " and ", to_string(large.shape()), " on ", ranks, " ranks");
}

}  // namespace hctr
