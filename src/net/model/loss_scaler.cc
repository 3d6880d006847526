#include "net/model/loss_scaler.h"

#include "core/device/copy_bytes.h"
#include "ops/common/rounding.h"

namespace hctr {

LossScaler::LossScaler(const Precision& precision, Runtime& runtime)
    : rule_{.dynamic = precision.dynamic_scale}, scale_(runtime.device(), sizeof(ops::LossScale)) {
  overflow_.add(TensorSpec(DType::f32, {1}));
  overflow_.add(TensorSpec(DType::i32, {1}));
  overflow_.build(runtime.device());
  const ops::LossScale start{.scale = static_cast<float>(precision.loss_scale)};
  copy_bytes(runtime.compute_stream(), scale_.data(), &start, sizeof start);
  runtime.compute_stream().synchronize();
}

void LossScaler::begin(Context& ctx, StepState* state) const {
  ops::begin_scaled_step(ctx, scale(), state, overflow_.get(0));
}

ops::OverflowSearch LossScaler::search(DType exchange) const {
  return {exchange == DType::f16 ? ops::kLargest<Half> : ops::kLargest<float>, overflow_.get(0).data<float>()};
}

void LossScaler::end(Context& ctx, const std::vector<Tensor>& gradients, Communicator& comm, StepState* state) const {
  if (comm.size() == 1)
    return ops::end_scaled_step_after_search(ctx, gradients, search(), rule_, overflow_.get(0), overflow_.get(1),
                                             scale(), state);
  for (const Tensor& some : gradients) ops::find_overflow(ctx, some, search());
  comm.all_reduce(ctx, overflow_.get(0), Reduce::sum);
  ops::end_scaled_step(ctx, rule_, overflow_.get(0), scale(), state);
}

ops::LossScale LossScaler::read(StreamRef stream) const {
  ops::LossScale host;
  copy_bytes(stream, &host, scale_.data(), sizeof host);
  stream.synchronize();
  return host;
}

}  // namespace hctr
