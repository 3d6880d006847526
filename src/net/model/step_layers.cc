#include "net/model/step_layers.h"

#include <utility>

#include "core/device/profiler.h"
#include "net/graph/layer_bytes.h"

namespace hctr {

bool StepLayers::run(const Context& own, const PlannedCall& call) {
  Context ctx = call.multiprocessors > 0 ? own.with_multiprocessors(call.multiprocessors) : own;
  Context backward = own.with_last_launches(&last_);
  switch (call.part) {
    case StepPart::convert_dense:
      network_.convert_dense(ctx, binding_);
      break;
    case StepPart::copy_weights:
      network_.write_weight_copies(ctx, binding_, call.index, call.end);
      break;
    case StepPart::forward:
      network_.forward_node(ctx, binding_, call.index);
      break;
    case StepPart::sum_losses:
      network_.sum_losses(ctx);
      break;
    case StepPart::backward:
      network_.backward_node(backward, binding_, call.index);
      break;
    case StepPart::sum_contributions:
      network_.sum_contributions(backward, call.index);
      break;
    case StepPart::weight_gradients:
      weight_gradients(call.stream == StepStream::compute ? backward : ctx, call);
      break;
    case StepPart::grouped_all:
      start_all();
      break;
    case StepPart::grouped_sums:
      start_sums(ctx);
      break;
    case StepPart::grouped_products:
      start_products();
      break;
    default:
      return false;
  }
  return true;
}

void StepLayers::weight_gradients(Context& ctx, const PlannedCall& call) {
  const double bytes = ctx.runtime().profiler() ? bytes_backward_weights(binding_.calls[call.index]) : 0;
  if (call.grouped) bytes_at_the_end_ += bytes;
  network_.backward_weights(ctx, binding_, call.index, call.grouped ? 0 : bytes);
}

void StepLayers::start_all() {
  const ProfiledPart part(caller_, "weight gradients", "weights", "bias gradients and wgrads of all layers",
                          {.bytes = std::exchange(bytes_at_the_end_, 0)});
  last_.run();
}

void StepLayers::start_sums(Context& ctx) {
  const ProfiledPart part(ctx, "weight gradients", "weights", "bias gradients of all layers");
  last_.run_first(ctx);
}

void StepLayers::start_products() {
  grouped_.assign(last_.late().begin(), last_.late().end());
  const ProfiledPart part(caller_, "weight gradients", "weights", "wgrads of all layers", {.bytes = bytes_at_the_end_});
  last_.run_late(caller_);
}

}  // namespace hctr
