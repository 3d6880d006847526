// Activation kernels: element-wise maps with the functors of ops/common/activation_rules.h, which the CPU uses too.
#include "ops/common/activation.h"

#include "ops/common/activation_rules.h"
#include "ops/common/element_loops.cuh"

namespace hctr::ops {

void cuda::activate(Context& ctx, Activation f, Tensor x, Tensor y) {
  const Extent extent = extent_of({x, y});
  dispatch_activation(f.kind, [&]<class Rule>() {
    dispatch_float(x.dtype(), [&]<class T>() {
      map<ForwardOf<Rule>, T, T, 1>(ctx, "activate", {{f.alpha}}, {{rows_of<const T>(x, extent)}},
                                    rows_of<T>(y, extent));
    });
  });
}

void cuda::activate_backward(Context& ctx, Activation f, Tensor x, Tensor dy, Tensor dx) {
  const Extent extent = extent_of({x, dy, dx});
  dispatch_activation(f.kind, [&]<class Rule>() {
    dispatch_float(x.dtype(), [&]<class T>() {
      map<BackwardOf<Rule>, T, T, 2>(ctx, "activate_backward", {{f.alpha}},
                                     {{rows_of<const T>(x, extent), rows_of<const T>(dy, extent)}},
                                     rows_of<T>(dx, extent));
    });
  });
}

}  // namespace hctr::ops
