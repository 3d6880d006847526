// Ranks drawn from a power law: few are frequent and many are rare, like the keys of real data.
#pragma once

#include <cstdint>
#include <vector>

namespace hctr {

/// Draws ranks 0 .. size-1 with density proportional to (rank + 1)^-alpha; alpha 0 is uniform. The inverse of the
/// continuous law's cumulative distribution is tabulated, so a draw computes no logarithm.
class PowerLaw {
 public:
  PowerLaw(int64_t size, double alpha);
  /// Returns the rank of `u`, which is uniform in [0, 1).
  int64_t rank(double u) const;

 private:
  int64_t size_;
  std::vector<double> knots_;  // the inverse at equal steps; linear interpolation in between
};

}  // namespace hctr
