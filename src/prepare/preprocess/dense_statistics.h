// Statistics of a dense column, and the scaling derived from them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "config/json.h"
#include "core/base/moments.h"

namespace hctr {

enum class Normalize { none, minmax, standard };

struct DenseOptions {
  double fill = 0;                        ///< replaces a missing value, before scaling
  bool fill_with_mean = false;            ///< replace missing values by the mean of the training rows instead
  bool log = false;                       ///< ln(1 + max(v, 0))
  Normalize normalize = Normalize::none;  ///< after the logarithm: (v - least) / (most - least), or (v - mean) /
                                          ///< deviation, of the training rows
};

/// Statistics of a dense column over the training rows, of the values that are not missing. Merging in a fixed order
/// makes the result reproducible bit by bit.
struct DenseColumn {
  NumberStatistics raw, scaled;  ///< statistics before and after the logarithm
  int64_t missing = 0;

  void add(std::span<const double> values, bool log);
  void merge(const DenseColumn&);
  Json describe(const std::string& name) const;
};

/// value -> (log(value or fill) - shift) * scale
class DenseScaling {
 public:
  DenseScaling(const DenseOptions&, const DenseColumn&);
  float operator()(double value) const;

 private:
  bool log_;
  double fill_, shift_ = 0, scale_ = 1;
};

}  // namespace hctr
