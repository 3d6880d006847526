// Names of dense features and slots.
#pragma once

#include <string>
#include <vector>

#include "formats/data/data_section.h"

namespace hctr {

/// The names of all dense values and slots. For Csv, Criteo and Parquet data with named columns, a name is that of the
/// column; otherwise the top of the input with an index, such as "keys[3]".
struct FeatureNames {
  std::vector<std::string> dense;
  std::vector<std::vector<std::string>> slots;  ///< [sparse inputs][slots]
};
FeatureNames feature_names(const DataSection&);

}  // namespace hctr
