// Names of a sample's features.
#pragma once

#include <string>
#include <vector>

#include "formats/data/data_section.h"

namespace hctr {

/// The name of each dense value, and of each slot of each sparse input: the columns of Csv, Criteo and Parquet data
/// where the config names them, else the input's top and an index, as "keys[3]".
struct FeatureNames {
  std::vector<std::string> dense;
  std::vector<std::vector<std::string>> slots;  ///< [sparse inputs][slots]
};
FeatureNames feature_names(const DataSection&);

}  // namespace hctr
