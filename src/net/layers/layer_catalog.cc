#include "net/layers/layer_catalog.h"

namespace hctr {

LayerType add();
LayerType batch_norm();
LayerType binary_cross_entropy_loss();
LayerType cast();
LayerType concat();
LayerType cross_entropy_loss();
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
LayerType gru();
LayerType inner_product();
LayerType interaction();
LayerType layer_norm();
LayerType leaky_relu();
LayerType matrix_multiply();
LayerType mlp();
LayerType multi_cross();
LayerType multi_cross_entropy_loss();
LayerType multi_head_attention();
LayerType multiply();
LayerType prelu();
LayerType prelu_dice();
LayerType reduce_mean();
LayerType reduce_sum();
LayerType relu();
LayerType reshape();
LayerType scale();
LayerType sequence_mask();
LayerType sigmoid();
LayerType silu();
LayerType slice();
LayerType softmax();
LayerType sub();
LayerType tanh();
LayerType weight_multiply();

const std::vector<LayerType>& layer_catalog() {
  static const std::vector<LayerType> types = {
      add(),
      batch_norm(),
      binary_cross_entropy_loss(),
      cast(),
      concat(),
      cross_entropy_loss(),
      dot_product(),
      dropout(),
      elementwise_multiply(),
      elu(),
      fm_order2(),
      fused_inner_product(),
      fused_reshape_concat(),
      fused_reshape_concat_general(),
      gather(),
      gelu(),
      gru(),
      inner_product(),
      interaction(),
      layer_norm(),
      leaky_relu(),
      matrix_multiply(),
      mlp(),
      multi_cross(),
      multi_cross_entropy_loss(),
      multi_head_attention(),
      multiply(),
      prelu(),
      prelu_dice(),
      reduce_mean(),
      reduce_sum(),
      relu(),
      reshape(),
      scale(),
      sequence_mask(),
      sigmoid(),
      silu(),
      slice(),
      softmax(),
      sub(),
      tanh(),
      weight_multiply(),
  };
  return types;
}

const LayerType* find_layer_type(const std::string& name) {
  for (const LayerType& type : layer_catalog())
    if (type.name() == name) return &type;
  return nullptr;
}

}  // namespace hctr
