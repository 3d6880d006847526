// The search of a step that has run for the first number that is NaN or infinite, in the order in which tensors were
// computed: what made the loss so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/sections/config.h"
#include "core/device/stream.h"
#include "core/device/tensor.h"
#include "formats/data/batch_layout.h"
#include "net/graph/graph.h"
#include "net/model/network.h"

namespace hctr {

/// The first tensor of a step that is not finite.
struct NotFinite {
  int64_t order = 0;             ///< its number among all tensors of the step, the same on every rank
  std::optional<int64_t> row{};  ///< the first row of this rank's batch in which it is; none: it has no samples
  int64_t samples = 0;           ///< how many rows of this rank it is not finite in
  std::string what{}, why{};     ///< "layer 'fc1' (InnerProduct) gives inf" and what is known of the reason
};

/// What a training step has left in memory, with nothing queued.
struct FinishedStep {
  const Config& config;
  const Graph& graph;
  const Network::Binding& binding;
  const BatchView& batch;  ///< on the host
  Tensor loss;             ///< the sum of all losses and penalties
  StreamRef stream;
  int64_t updates;  ///< iterations that have changed the weights: the last that can have spoiled them
};

/// The order: for each layer in running order its inputs that come from the data or a table, its weights, its outputs;
/// the loss; then for each layer in reverse the gradients of its inputs and of its weights. Rows without a sample are
/// left out. Copies each tensor to the host: slow. Nothing: all are finite.
std::optional<NotFinite> find_not_finite(const FinishedStep&);

}  // namespace hctr
