// Names of dense features and slots.
#pragma once

#include <string>
#include <vector>

#include "formats/data/data_section.h"

namespace hctr {

/// The name of each dense value and of each slot. For Csv, Criteo and Parquet data with named columns, the column's
/// name; otherwise the input's top and an index, such as "keys[3]".
struct FeatureNames {
  std::vector<std::string> dense;
  std::vector<std::vector<std::string>> slots;  ///< [sparse inputs][slots]
};
FeatureNames feature_names(const DataSection&);

}  // namespace hctr
