// Statistics of a dense column, and the scaling derived from them.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "config/json.h"

namespace hctr {

/// Statistics of the values that are not missing. Merging in a fixed order makes the result reproducible bit by bit.
struct DenseStatistics {
  int64_t count = 0;
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  double mean = 0, squares = 0;  ///< sum of squared distances from the mean

  double deviation() const;
  /// Merges two statistics: T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance", 1983,
  /// equation 2.1.
  void merge(const DenseStatistics&);
  void add_equal(double value, int64_t times) { merge({times, value, value, value, 0}); }
};

/// Returns the statistics of `values`, ignoring NaN.
DenseStatistics statistics_of(std::span<const double> values);

enum class Normalize { none, minmax, standard };

struct DenseOptions {
  double fill = 0;                        ///< replaces a missing value, before scaling
  bool fill_with_mean = false;            ///< replace missing values by the mean of the training rows instead
  bool log = false;                       ///< ln(1 + max(v, 0))
  Normalize normalize = Normalize::none;  ///< after the logarithm: (v - least) / (most - least), or (v - mean) /
                                          ///< deviation, of the training rows
};

/// Statistics of a dense column over the training rows.
struct DenseColumn {
  DenseStatistics raw, scaled;  ///< before and after the logarithm
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
