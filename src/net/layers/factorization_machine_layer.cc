#include "net/layers/factorization_machine_layer.h"

#include "ops/dense/factorization_machine.h"

namespace hctr {
namespace {

class FactorizationMachine : public Layer {
 public:
  LayerSpec spec(const Specs& inputs) const override {
    const TensorSpec &x = inputs[0], &vectors = inputs[1];
    const int64_t batch = vectors.rows(), slots = batch == 0 ? 0 : x.rows() / batch;
    const TensorSpec column(x.dtype, {batch, 1});
    return {.outputs = {TensorSpec(x.dtype, {batch, slots * (x.shape[1] - 1) + vectors.shape[1]}), column, column}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::factorization_machine(ctx, io.in[0], io.in[1], io.in[2], io.out[0], io.out[1], io.out[2]);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    const int64_t dim = io.in[0].dim(1) - 1;
    ops::factorization_machine_backward(ctx, (io.out[0].dim(1) - io.in[1].dim(1)) / dim, dim, io.out[0], io.d_out[0],
                                        io.d_out[1], io.d_out[2], {io.d_in[0], io.d_in[1], io.d_in[2]});
  }
};

}  // namespace

std::shared_ptr<const Layer> factorization_machine() { return std::make_shared<FactorizationMachine>(); }

}  // namespace hctr
