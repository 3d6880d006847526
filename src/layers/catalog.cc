#include "layers/catalog.h"

namespace hctr {

LayerType add();
LayerType binary_cross_entropy_loss();
LayerType concat();
LayerType dropout();
LayerType inner_product();
LayerType relu();
LayerType reshape();

const std::vector<LayerType>& layer_catalog() {
  static const std::vector<LayerType> types = {
      add(), binary_cross_entropy_loss(), concat(), dropout(), inner_product(), relu(), reshape(),
  };
  return types;
}

const LayerType* find_layer_type(const std::string& name) {
  for (const LayerType& type : layer_catalog())
    if (type.name() == name) return &type;
  return nullptr;
}

}  // namespace hctr
