// The ranges of wgrads in the flat gradient buffer, computed without allocating it.
#pragma once

#include <vector>

#include "net/model/weights.h"

namespace hctr {

/// Returns what Weights::gradient_ranges() returns for the model of this config and graph.
std::vector<GradientRange> gradient_ranges(const Config&, const Graph&);

}  // namespace hctr
