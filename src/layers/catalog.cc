#include "layers/catalog.h"

namespace hctr {

LayerType add();
LayerType batch_norm();
LayerType binary_cross_entropy_loss();
LayerType concat();
LayerType cross_entropy_loss();
LayerType dropout();
LayerType inner_product();
LayerType layer_norm();
LayerType matrix_multiply();
LayerType multi_cross_entropy_loss();
LayerType multi_head_attention();
LayerType prelu_dice();
LayerType relu();
LayerType reshape();
LayerType sequence_mask();
LayerType softmax();

const std::vector<LayerType>& layer_catalog() {
  static const std::vector<LayerType> types = {
      add(), batch_norm(), binary_cross_entropy_loss(), concat(), cross_entropy_loss(), dropout(), inner_product(),
      layer_norm(), matrix_multiply(), multi_cross_entropy_loss(), multi_head_attention(), prelu_dice(), relu(),
      reshape(), sequence_mask(), softmax(),
  };
  return types;
}

const LayerType* find_layer_type(const std::string& name) {
  for (const LayerType& type : layer_catalog())
    if (type.name() == name) return &type;
  return nullptr;
}

}  // namespace hctr
