// The tensors of one call of a layer, in the memory of a plan or in the batch.
#pragma once

#include <optional>

#include "net/graph/memory_plan.h"

namespace hctr {

/// Inputs, outputs, scratch memory and, in training, their gradients. Excludes weights, state and the tensors of
/// fusions. `dense`: the dense values of the batch, if layers read them in place; none if layers read the plan's copy.
LayerIo node_tensors(const Graph&, const MemoryPlan&, size_t node, Phase, const Tensor& label,
                     const std::optional<Tensor>& dense);

}  // namespace hctr
