// Gathers vectors at listed positions before they are sent to another host, and scatters them there.
#pragma once

#include <cstddef>

#include "core/device/op.h"

namespace hctr::ops {

/// Vectors of some memory by number: the i-th is list[i], or i without a list. On the context's device.
struct ListedVectors {
  std::byte* vectors = nullptr;   // the address of vector 0
  const int32_t* list = nullptr;  // null: 0, 1, 2, ...

  HCTR_HD std::byte* at(int64_t i, int64_t bytes) const { return vectors + (list ? int64_t{list[i]} : i) * bytes; }
};

/// Copies the first `count` vectors of `bytes` bytes each. Aliasing: `from` and `to` do not overlap.
HCTR_OP(void copy_listed(Context&, ListedVectors from, ListedVectors to, int64_t count, int64_t bytes))

}  // namespace hctr::ops
