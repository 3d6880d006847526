// The ranges of wgrads in the flat gradient buffer, computed without allocating it.
#pragma once

#include <vector>

#include "net/model/weights.h"

namespace hctr {

/// Weights::gradient_ranges() of a model.
std::vector<GradientRange> gradient_ranges(const Config&, const Graph&);

}  // namespace hctr
