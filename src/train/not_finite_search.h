// Finds the cause of a NaN or infinite loss: searches the tensors of a finished step, in order of computation, for the
// first element that is not finite.
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

/// The first tensor of a step with an element that is not finite.
struct NotFinite {
  int64_t order = 0;             ///< position among all tensors of the step, equal on every rank
  std::optional<int64_t> row{};  ///< the first bad row in this rank's batch; none if rows do not belong to samples
  int64_t samples = 0;           ///< number of bad rows on this rank
  /// what: for example "layer 'fc1' (InnerProduct) gives inf"; why: the reason, if known
  std::string what{}, why{};
};

/// The tensors that a finished training step has left in memory. No step may be queued.
struct FinishedStep {
  const Config& config;
  const Graph& graph;
  const Network::Binding& binding;
  const BatchView& batch;  ///< the batch on the host
  Tensor loss;             ///< the sum of all losses and penalties
  StreamRef stream;
  /// number of iterations that have updated the weights; the last update may have damaged the weights
  int64_t updates;
};

/// Searches in this order. First, for each layer in running order: inputs from the data or a table, weights, outputs.
/// Second, the loss. Third, for each layer in reverse order: gradients of inputs, wgrads. Skips padding rows. Copies
/// each tensor to the host, which is slow. Returns none if all elements are finite.
std::optional<NotFinite> find_not_finite(const FinishedStep&);

}  // namespace hctr
