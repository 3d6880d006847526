// Dropout: zeroes elements at random while training.
#include "ops/common/dropout.h"

#include "core/base/random.h"
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/copy.h"

namespace hctr {
namespace {

struct DropoutParams {
  double rate = 0.5;
};

class Dropout : public Layer {
 public:
  Dropout(const std::string& name, DropoutParams params)
      : stream_(random_stream(name)), rate_(static_cast<float>(params.rate)) {}

  LayerSpec spec(const Specs& inputs) const override {
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)},
            .traits = {.element_function = {{ElementFunction::Kind::dropout, rate_, stream_}}}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase phase) const override {
    if (phase == Phase::train && rate_ > 0)
      ops::dropout(ctx, rate_, stream_, io.in[0], io.out[0]);
    else
      ops::copy(ctx, io.in[0], io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override { graph.add_as(io.y(), "Identity", {io.x()}); }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (!io.d_in[0]) return;
    if (rate_ > 0)
      ops::dropout_backward(ctx, rate_, stream_, io.d_out[0], *io.d_in[0]);
    else
      ops::copy(ctx, io.d_out[0], *io.d_in[0]);
  }

 private:
  uint64_t stream_;
  float rate_;
};

}  // namespace

LayerType dropout() {
  return LayerType::of<Dropout>(
      "Dropout", "training: y = x / (1 - rate) with probability 1 - rate, else 0; evaluation: y = x", {1, 1}, {1, 1},
      Schema<DropoutParams>("Dropout").opt("rate", &DropoutParams::rate, "fraction of elements set to zero",
                                           Range{.low = 0, .high = 1, .high_open = true}));
}

}  // namespace hctr
