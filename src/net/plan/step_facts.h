// The inputs of a step's plan: facts about the device, the ranks, and the layers and tables of a model. Plain data, so
// that a plan can be made for a GPU that this machine does not have.
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

/// A node of the graph.
struct LayerFacts {
  std::string name;
  bool loss = false;
  bool trained = false;          ///< the layer, or one before it, has trained weights
  bool own_memory = true;        ///< its outputs share no memory with its inputs
  bool run_by_loss = false;      ///< a loss does all of its work
  bool fused_relu = false;       ///< ends with a ReLU whose backward pass the reader computes
  bool dgrad_fills_gpu = false;  ///< one GEMM, whose dgrad ops::keeps_gpu_busy()
  bool weight_copies = false;    ///< reads transposed copies of weights (ops::gains_by_transposed_weights)
  bool weights = false, weight_gradients = false;
  bool weights_in_backward = false;  ///< backward() writes all wgrads
  bool matrix_gradient = false;      ///< one of its wgrads is a matrix
  bool transient = false;            ///< uses memory that other layers use
  bool sums_over_ranks = false;      ///< an all-reduce of gradients starts once its gradients are complete
  ops::WeightGradientRun wgrad = ops::WeightGradientRun::in_order;  ///< when backward_weights() runs
  bool finite_products = true;     ///< wgrads are finite if their operands, in f16, are
  size_t grouped_in_backward = 0;  ///< GEMMs of backward() that are deferred to the end of the backward pass
  /// if it runs best concurrently with the layers up to this one, its reader
  std::optional<size_t> concurrent_until{};
  std::vector<size_t> first_reads{};  ///< tables that no earlier layer reads
};

struct TableFacts {
  std::string name;
  bool by_element = false;  ///< vector size is not a multiple of four: other kernels pool and update them
  bool on_disk = false;     ///< rows may be on disk: the host takes part in look-ups
  // On several ranks, as in engine/exchange/rank_embedding.h:
  bool replicated_rows = false, exchanges_by_kernels = false, sends_by_engines = false;
};

struct StepFacts {
  std::optional<GpuTraits> gpu{};  ///< none: a CPU
  int ranks = 1;
  bool recorded_whole = true;   ///< false: the sizes of exchanges between hosts depend on the batch
  bool tensor_cores = false;    ///< GEMMs use 16-bit types or TF32
  bool may_skip = false;        ///< a step is skipped when one of its gradients is infinite or NaN
  bool penalty = false;         ///< a regularizer reads wgrads and adds to them
  bool copies_dense = false;    ///< dense values are converted to the dtype of activations
  bool bag_lengths = false;     ///< layers read the number of keys in a bag
  bool several_losses = false;  ///< the loss is a sum of several
  bool fp8 = false;
  std::optional<ops::MultiprocessorShares> lookup_shares{};  ///< from ops::shares_beside_lookup()
  std::vector<LayerFacts> layers{};                          ///< in running order
  std::vector<TableFacts> tables{};

  bool alone() const { return ranks == 1; }
  /// The first layer that reads an embedding; the number of layers if none does.
  size_t first_reader() const;
  /// Whether a layer with weights, and no loss, runs before the first reader of an embedding.
  bool computes_before_embeddings() const;
  bool any_weight_copies() const;
};

/// The facts of a graph's nodes, bound to tensors in training. Uses only the descriptions of the tensors, not their
/// data.
std::vector<LayerFacts> layer_facts(const Graph&, std::span<const LayerIo>, const std::optional<GpuTraits>&,
                                    const RuntimeOptions&);

}  // namespace hctr
