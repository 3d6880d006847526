// Gathers vectors from listed positions before a transfer to another host, and scatters vectors to listed positions
// after a transfer.
#pragma once

#include <cstddef>

#include "core/device/op.h"

namespace hctr::ops {

/// An array of vectors with an optional index list: vector i is at list[i], or at i if `list` is null. On the context's
/// device.
struct ListedVectors {
  std::byte* vectors = nullptr;   // address of vector 0
  const int32_t* list = nullptr;  // null: 0, 1, 2, ...

  HCTR_HD std::byte* at(int64_t i, int64_t bytes) const { return vectors + (list ? int64_t{list[i]} : i) * bytes; }
};

/// Copies `count` vectors of `bytes` bytes each. Aliasing: `from` and `to` must not overlap.
HCTR_OP(void copy_listed(Context&, ListedVectors from, ListedVectors to, int64_t count, int64_t bytes))

}  // namespace hctr::ops
