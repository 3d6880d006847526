// Draws ranks from a power law: few ranks are frequent and many are rare, as for keys of real data.
#pragma once

#include <cstdint>
#include <vector>

namespace hctr {

/// Draws ranks 0 .. size-1 with density proportional to (rank + 1)^-alpha; alpha 0 is uniform. The inverse of the
/// cumulative distribution is tabulated, so that a draw needs no logarithm.
class PowerLaw {
 public:
  PowerLaw(int64_t size, double alpha);
  /// Maps `u`, uniform in [0, 1), to a rank.
  int64_t rank(double u) const;

 private:
  int64_t size_;
  std::vector<double> knots_;  // inverse cumulative distribution at equidistant points, for linear interpolation
};

}  // namespace hctr
