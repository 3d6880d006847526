// DotProduct and ElementwiseMultiply: both are names of the element-wise product.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/dense/multiply.h"

namespace hctr {
namespace {

struct ProductParams {
  Compatibility compatibility;
};

template <bool kDotProduct>
class Product : public Layer {
 public:
  static constexpr const char* kType = kDotProduct ? "DotProduct" : "ElementwiseMultiply";

  Product(const std::string&, const ProductParams& params)
      : none_to_zero_(kDotProduct && params.compatibility.dot_product_gradient) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_one_shape(inputs, kType);
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override { ops::multiply(ctx, io.in, io.out[0]); }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    std::string y = io.x();
    for (size_t i = 1; i < io.in.size(); ++i) {
      const std::string next = i + 1 < io.in.size() ? graph.name("y") : io.y();
      graph.add_as(next, "Mul", {y, io.in[i].name});
      y = next;
    }
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    ops::multiply_backward(ctx, io.in, io.d_out[0], io.d_in);
    for (size_t i = 0; none_to_zero_ && i < io.in.size(); ++i)
      if (io.d_in[i]) ops::zero_where_zero(ctx, io.in[i], *io.d_in[i]);
  }

 private:
  bool none_to_zero_;  // true: where a factor is 0, its gradient is set to 0
};

template <bool kDotProduct>
LayerType product() {
  using L = Product<kDotProduct>;
  return LayerType::of<L>(L::kType, "y = x_0 x_1 ..., element by element", {2, static_cast<int>(ops::kMostFactors)},
                          {1, 1}, Schema<ProductParams>(L::kType));
}

}  // namespace

LayerType dot_product() { return product<true>(); }
LayerType elementwise_multiply() { return product<false>(); }

}  // namespace hctr
