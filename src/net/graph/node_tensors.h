// The tensors of a layer's call that lie in a plan's memory, or in the batch.
#pragma once

#include <optional>

#include "net/graph/memory_plan.h"

namespace hctr {

/// Inputs, outputs, scratch memory and, in training, their gradients; without weights, state and the tensors of
/// fusions. `dense`: the dense values in the batch that layers read; none: layers read the plan's copy.
LayerIo node_tensors(const Graph&, const MemoryPlan&, size_t node, Phase, const Tensor& label,
                     const std::optional<Tensor>& dense);

}  // namespace hctr
