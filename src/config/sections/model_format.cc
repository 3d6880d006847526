#include "config/sections/model_format.h"

namespace hctr {

const std::vector<std::pair<std::string, ModelFormat>>& EnumWords<ModelFormat>::table() {
  static const std::vector<std::pair<std::string, ModelFormat>> words = {{"v2", ModelFormat::v2},
                                                                         {"v3", ModelFormat::v3}};
  return words;
}

}  // namespace hctr
