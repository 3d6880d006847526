// The inputs of a step plan: facts about the device, the ranks, and the model's layers and tables. All are plain data,
// so that a plan can also be made for a GPU that is not in this machine.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device/context.h"
#include "core/device/gpu_traits.h"
#include "net/graph/graph.h"
#include "net/layers/layer.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/weight_gradient.h"

namespace hctr {

/// Facts about a node of the graph.
struct LayerFacts {
  std::string name;
  bool loss = false;
  bool trained = false;          ///< the layer, or a preceding layer, has trained weights
  bool own_memory = true;        ///< the layer's outputs share no memory with its inputs
  bool run_by_loss = false;      ///< a loss does all work of this layer
  bool fused_relu = false;       ///< ends with a ReLU whose backward pass the reader computes
  bool dgrad_fills_gpu = false;  ///< the dgrad is one GEMM that fills the GPU (ops::keeps_gpu_busy)
  bool weight_copies = false;    ///< reads transposed copies of weights (ops::gains_by_transposed_weights)
  bool weights = false, weight_gradients = false;
  bool weights_in_backward = false;  ///< backward() writes all wgrads
  bool matrix_gradient = false;      ///< at least one of the wgrads is a matrix
  bool transient = false;            ///< uses memory that other layers also use
  bool sums_over_ranks = false;      ///< an all-reduce starts once the wgrads of this layer are complete
  ops::WeightGradientRun wgrad = ops::WeightGradientRun::in_order;  ///< how backward_weights() is scheduled
  bool finite_products = true;     ///< wgrads are finite if their f16 operands are finite
  size_t grouped_in_backward = 0;  ///< number of GEMMs in backward() that are deferred to the end of the backward pass
  /// index of the layer's reader, if the layer runs best concurrently with the layers up to that reader
  std::optional<size_t> concurrent_until{};
  std::vector<size_t> first_reads{};  ///< tables whose first reader is this layer
};

struct TableFacts {
  std::string name;
  /// true: the vector size is not a multiple of four, and separate kernels pool and update the vectors
  bool by_element = false;
  bool on_disk = false;  ///< rows may be on disk, so the host takes part in look-ups
  // The next members matter only with several ranks; engine/exchange/rank_embedding.h explains them.
  bool replicated_rows = false, exchanges_by_kernels = false, sends_by_engines = false;
};

struct StepFacts {
  std::optional<GpuTraits> gpu{};  ///< none on a CPU
  int ranks = 1;
  /// false if the sizes of exchanges between hosts depend on the batch; a step is then recorded in pieces
  bool recorded_whole = true;
  bool tensor_cores = false;    ///< GEMMs use 16-bit types or TF32
  bool may_skip = false;        ///< a step with an inf or NaN gradient is skipped
  bool penalty = false;         ///< a regularizer reads and changes wgrads
  bool copies_dense = false;    ///< dense values are converted to the dtype of activations
  bool bag_lengths = false;     ///< layers read the number of keys of each bag
  bool several_losses = false;  ///< the loss is a sum of several losses
  bool fp8 = false;
  std::optional<ops::MultiprocessorShares> lookup_shares{};  ///< from ops::shares_beside_lookup()
  std::vector<LayerFacts> layers{};                          ///< in running order
  std::vector<TableFacts> tables{};

  bool alone() const { return ranks == 1; }
  /// The first layer that reads an embedding; the number of layers if no layer does.
  size_t first_reader() const;
  /// Whether a layer with weights, other than a loss, runs before the first reader of an embedding.
  bool computes_before_embeddings() const;
  bool any_weight_copies() const;
};

/// The facts of a graph's nodes. The tensors in LayerIo must be bound for training. Only their specs and addresses are
/// used, not their data.
std::vector<LayerFacts> layer_facts(const Graph&, std::span<const LayerIo>, const std::optional<GpuTraits>&,
                                    const RuntimeOptions&);

}  // namespace hctr
