#include "net/graph/layer_bytes.h"

#include <algorithm>

namespace hctr {
namespace {

double bytes_of(const std::vector<Tensor>& tensors) {
  double bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<double>(t.elements()) * static_cast<double>(size_of(t.dtype()));
  return bytes;
}

/// The bytes of all tensors in `in` and `out`, except tensors that share memory with a tensor of the other list. The
/// lists are the inputs and outputs of a layer, or their gradients.
double bytes_between(const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
  const auto inside = [](const Tensor& part, const std::vector<Tensor>& all) {
    return std::any_of(all.begin(), all.end(), [&](const Tensor& t) {
      return part.bytes() >= t.bytes() && part.bytes() < t.bytes() + t.spec().bytes();
    });
  };
  double bytes = 0;
  for (const Tensor& t : in)
    if (!inside(t, out)) bytes += bytes_of({t});
  for (const Tensor& t : out)
    if (!inside(t, in)) bytes += bytes_of({t});
  return bytes;
}

std::vector<Tensor> present(const std::vector<std::optional<Tensor>>& tensors) {
  std::vector<Tensor> out;
  for (const auto& t : tensors)
    if (t) out.push_back(*t);
  return out;
}

}  // namespace

double bytes_forward(const LayerIo& io) {
  double bytes = bytes_between(io.in, io.out) + bytes_of(io.weights) + bytes_of(io.scratch);
  if (io.logit)
    for (const ops::ConcatLinearInput& input : io.logit->layer.inputs)
      bytes += bytes_of({input.x}) + (input.d_x ? bytes_of({*input.d_x}) : 0);
  return bytes;
}

double bytes_backward(const LayerSpec& spec, const LayerIo& io) {
  const double weights = writes_weights_in_backward(spec, io) ? bytes_of(io.d_weights) : 0;
  const double moved = bytes_between(present(io.d_in), io.d_out) + weights;
  if (spec.memory != LayerSpec::Memory::own) return moved;
  return moved + bytes_of(io.in) + bytes_of(io.out) + bytes_of(io.weights) + bytes_of(io.scratch);
}

double bytes_backward_weights(const LayerIo& io) {
  return io.d_weights.empty() ? 0 : bytes_of(io.in) + bytes_of(io.d_out) + bytes_of(io.d_weights);
}

}  // namespace hctr
