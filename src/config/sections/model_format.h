// The layouts of tables in model files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/values.h"

namespace hctr {

/// v2: a file of rows, as HugeCTR 2.x and 3.0 read it. v3: a folder with a file for each of keys, slot ids and vectors,
/// as later versions do.
enum class ModelFormat { v2, v3 };
template <>
struct EnumWords<ModelFormat> {
  static const std::vector<std::pair<std::string, ModelFormat>>& table();
};

}  // namespace hctr
