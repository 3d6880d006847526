// The sum of any number of tensors.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/common/add.h"
#include "ops/common/copy.h"

namespace hctr {

/// y = the sum of x, in order. Aliasing: y must not be an element of x.
inline void sum_of(Context& ctx, const std::vector<Tensor>& x, Tensor y) {
  if (x.size() == 1) return ops::copy(ctx, x[0], y);
  for (size_t done = 0; done < x.size();) {
    std::vector<Tensor> some;
    if (done > 0) some.push_back(y);
    const size_t end = std::min(x.size(), done + ops::kMostAddends - some.size());
    some.insert(some.end(), x.begin() + static_cast<std::ptrdiff_t>(done),
                x.begin() + static_cast<std::ptrdiff_t>(end));
    ops::add(ctx, some, y);
    done = end;
  }
}

}  // namespace hctr
