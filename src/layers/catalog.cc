#include "layers/catalog.h"

namespace hctr {

LayerType add();
LayerType binary_cross_entropy_loss();
LayerType cast();
LayerType concat();
LayerType dot_product();
LayerType dropout();
LayerType elementwise_multiply();
LayerType elu();
LayerType fm_order2();
LayerType fused_inner_product();
LayerType fused_reshape_concat();
LayerType fused_reshape_concat_general();
LayerType gather();
LayerType gelu();
LayerType inner_product();
LayerType interaction();
LayerType leaky_relu();
LayerType mlp();
LayerType multi_cross();
LayerType multiply();
LayerType prelu();
LayerType reduce_mean();
LayerType reduce_sum();
LayerType relu();
LayerType reshape();
LayerType scale();
LayerType sigmoid();
LayerType silu();
LayerType slice();
LayerType sub();
LayerType tanh();
LayerType weight_multiply();

const std::vector<LayerType>& layer_catalog() {
  static const std::vector<LayerType> types = {
      add(), binary_cross_entropy_loss(), cast(), concat(), dot_product(), dropout(), elementwise_multiply(), elu(),
      fm_order2(), fused_inner_product(), fused_reshape_concat(), fused_reshape_concat_general(), gather(), gelu(),
      inner_product(), interaction(), leaky_relu(), mlp(), multi_cross(), multiply(), prelu(), reduce_mean(), reduce_sum(),
      relu(), reshape(), scale(), sigmoid(), silu(), slice(), sub(), tanh(), weight_multiply(),
  };
  return types;
}

const LayerType* find_layer_type(const std::string& name) {
  for (const LayerType& type : layer_catalog())
    if (type.name() == name) return &type;
  return nullptr;
}

}  // namespace hctr
