#include "layers/catalog.h"

namespace hctr {

LayerType add();
LayerType batch_norm();
LayerType binary_cross_entropy_loss();
LayerType concat();
LayerType cross_entropy_loss();
LayerType dropout();
LayerType inner_product();
LayerType multi_cross_entropy_loss();
LayerType relu();
LayerType reshape();

const std::vector<LayerType>& layer_catalog() {
  static const std::vector<LayerType> types = {
      add(), batch_norm(), binary_cross_entropy_loss(), concat(), cross_entropy_loss(), dropout(), inner_product(),
      multi_cross_entropy_loss(), relu(), reshape(),
  };
  return types;
}

const LayerType* find_layer_type(const std::string& name) {
  for (const LayerType& type : layer_catalog())
    if (type.name() == name) return &type;
  return nullptr;
}

}  // namespace hctr
