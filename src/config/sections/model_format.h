// The file layouts of saved tables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/values.h"

namespace hctr {

/// v2: one file of rows, as HugeCTR 2.x and 3.0 read. v3: a folder with one file each for keys, slot ids and vectors,
/// as later HugeCTR versions read.
enum class ModelFormat { v2, v3 };
template <>
struct EnumWords<ModelFormat> {
  static const std::vector<std::pair<std::string, ModelFormat>>& table();
};

}  // namespace hctr
