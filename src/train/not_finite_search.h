// Finds the cause of a NaN or infinite loss: searches the tensors of a finished step, in the order of computation, for
// the first element that is not finite.
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
  int64_t order = 0;             ///< position in the order of all tensors of the step, the same on every rank
  std::optional<int64_t> row{};  ///< the first bad row in this rank's batch; none: the tensor has no rows per sample
  int64_t samples = 0;           ///< number of bad rows on this rank
  std::string what{}, why{};     ///< "layer 'fc1' (InnerProduct) gives inf"; the reason, as far as known
};

/// The tensors that a finished training step has left in memory; nothing is queued.
struct FinishedStep {
  const Config& config;
  const Graph& graph;
  const Network::Binding& binding;
  const BatchView& batch;  ///< on the host
  Tensor loss;             ///< the sum of all losses and penalties
  StreamRef stream;
  int64_t updates;  ///< number of iterations that have updated the weights; the last of them may have damaged these
};

/// The search order: for each layer in running order its inputs from the data or a table, its weights, its outputs; the
/// loss; then for each layer in reverse order the gradients of its inputs and its wgrads. Skips padding rows. Copies
/// each tensor to the host, which is slow. Returns nothing if all are finite.
std::optional<NotFinite> find_not_finite(const FinishedStep&);

}  // namespace hctr
