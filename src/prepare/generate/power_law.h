// Ranks drawn by a power law: few are frequent, many are rare, as keys of real data are.
#pragma once

#include <cstdint>
#include <vector>

namespace hctr {

/// Ranks 0 .. size-1 with density proportional to (rank + 1)^-alpha; alpha 0 is uniform. Drawn by inverting the
/// cumulative density of the continuous law, from a table, so a draw costs no logarithm.
class PowerLaw {
 public:
  PowerLaw(int64_t size, double alpha);
  /// `u` uniform in [0, 1).
  int64_t rank(double u) const;

 private:
  int64_t size_;
  std::vector<double> knots_;  // the inverse at equal steps; linear in between
};

}  // namespace hctr
