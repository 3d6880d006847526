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
  double fill = 0;              ///< replaces missing values before scaling
  bool fill_with_mean = false;  ///< whether the mean of the training rows replaces missing values, instead of `fill`
  bool log = false;             ///< whether to apply ln(1 + max(v, 0))
  /// after `log`: (v - least) / (most - least), or (v - mean) / deviation, over the training rows
  Normalize normalize = Normalize::none;
};

/// Statistics of the non-missing values of a dense column over the training rows. Merging in a fixed order makes the
/// result reproducible bit by bit.
struct DenseColumn {
  NumberStatistics raw, scaled;  ///< raw: before the logarithm; scaled: after it
  int64_t missing = 0;

  void add(std::span<const double> values, bool log);
  void merge(const DenseColumn&);
  Json describe(const std::string& name) const;
};

/// Maps a value to (v - shift) * scale. v is the value, or the replacement of a missing value, or the logarithm of
/// either.
class DenseScaling {
 public:
  DenseScaling(const DenseOptions&, const DenseColumn&);
  float operator()(double value) const;

 private:
  bool log_;
  double fill_, shift_ = 0, scale_ = 1;
};

}  // namespace hctr
