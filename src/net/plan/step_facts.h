// What the plan of a step goes by: facts of the device, the ranks, the layers and the tables of a model. Plain data, so
// that a plan can be made for a GPU that is not here.
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
  bool trained = false;          ///< it, or something before it
  bool own_memory = true;        ///< its outputs are no views of its inputs, or its inputs of its outputs
  bool run_by_loss = false;      ///< a loss does all that it would do
  bool fused_relu = false;       ///< ends with a ReLU whose backward pass its reader finishes
  bool dgrad_fills_gpu = false;  ///< one product, whose dgrad ops::keeps_gpu_busy()
  bool weight_copies = false;    ///< reads transposed copies of weights (ops::gains_by_transposed_weights)
  bool weights = false, weight_gradients = false;
  bool weights_in_backward = false;  ///< backward() writes all gradients of weights
  bool matrix_gradient = false;      ///< one of them is a matrix
  bool transient = false;            ///< uses memory that other layers use
  bool sums_over_ranks = false;      ///< an all-reduce of gradients begins once its own are complete
  ops::WeightGradientRun wgrad = ops::WeightGradientRun::in_order;  ///< of backward_weights()
  bool finite_products = true;               ///< gradients of weights are finite if their operands are: these are f16
  size_t grouped_in_backward = 0;            ///< products of backward() that wait for the end of the backward pass
  std::optional<size_t> concurrent_until{};  ///< if it best runs concurrently with those up to this one, its reader
  std::vector<size_t> first_reads{};         ///< tables that no layer before it reads
};

struct TableFacts {
  std::string name;
  bool by_element = false;  ///< vectors are no multiple of four numbers, which other kernels pool and update
  bool on_disk = false;     ///< rows may be on a disk: the host takes part in look-ups
  // On several ranks, as engine/exchange/rank_embedding.h has them:
  bool replicated_rows = false, exchanges_by_kernels = false, sends_by_engines = false;
};

struct StepFacts {
  std::optional<GpuTraits> gpu{};  ///< none: a CPU
  int ranks = 1;
  bool recorded_whole = true;   ///< false: sizes of what hosts exchange are known with the batch only
  bool tensor_cores = false;    ///< products are of two bytes or TF32
  bool may_skip = false;        ///< a step is skipped when one of its gradients is infinite or NaN
  bool penalty = false;         ///< a regularizer reads gradients of weights, and adds to them
  bool copies_dense = false;    ///< dense values are converted to the type of activations
  bool bag_lengths = false;     ///< layers read how many keys a bag has
  bool several_losses = false;  ///< whose sum is the loss
  bool fp8 = false;
  std::optional<ops::MultiprocessorShares> lookup_shares{};  ///< as ops::shares_beside_lookup() has them
  std::vector<LayerFacts> layers{};                          ///< in running order
  std::vector<TableFacts> tables{};

  bool alone() const { return ranks == 1; }
  /// The first layer that reads an embedding; the number of layers if none does.
  size_t first_reader() const;
  /// Whether a layer with weights runs before any that reads an embedding, and no loss does.
  bool computes_before_embeddings() const;
  bool any_weight_copies() const;
};

/// Of the nodes of a graph, bound to tensors in training. These are described alone: nothing is read.
std::vector<LayerFacts> layer_facts(const Graph&, std::span<const LayerIo>, const std::optional<GpuTraits>&,
                                    const RuntimeOptions&);

}  // namespace hctr
