// The tensors of one call of a layer, in the memory of a plan or in the batch.
#pragma once

#include <optional>

#include "net/graph/memory_plan.h"

namespace hctr {

/// The inputs, outputs and scratch memory of a node; in training also the gradients of its inputs and outputs. Excludes
/// weights, state and the tensors that only fusions use. `dense`: the dense values of the batch, if layers read them in
/// place; none if layers read the plan's copy.
LayerIo node_tensors(const Graph&, const MemoryPlan&, size_t node, Phase, const Tensor& label,
                     const std::optional<Tensor>& dense);

}  // namespace hctr
