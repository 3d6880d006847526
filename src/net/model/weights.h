// The dense weights of one replica, their gradients and optimizer state, and their file.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "core/device/arena.h"
#include "core/device/profiler.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "net/graph/graph.h"
#include "ops/optimizer/optimizer.h"

namespace hctr {

/// Elements [begin, end) of all gradients, which belong to one weight of `node`.
struct GradientRange {
  size_t node;
  int64_t begin, end;
};

/// A tensor of the model by its name in files: "fc1/weights".
struct NamedTensor {
  std::string name;
  Tensor value;
};

/// Whether a replica trains, or only scores: then it has neither gradients nor states of the optimizer. score_dense:
/// nor has it tables, since vectors of keys come from elsewhere.
enum class ReplicaUse { train, score, score_dense };

class Weights {
 public:
  /// Draws initial values from the runtime's seed and each weight's name, in the order of the config's layers.
  Weights(const Config&, const Graph&, Runtime&, ReplicaUse = ReplicaUse::train);

  /// The tensors that the layer reads: the weights, or their copies in the dtype of its outputs.
  std::vector<Tensor> of_node(size_t node) const;
  /// For each weight of the node, the memory of the transposed copy that LayerIo::transposed gets. Network::forward()
  /// writes it.
  std::vector<std::optional<Tensor>> transposed_of_node(size_t node) const;
  std::vector<Tensor> gradients_of_node(size_t node) const;

  /// All weights, f32, in the order of the dense model file.
  std::vector<NamedTensor> values() const;

  /// total[0] += the penalty of the weights that have one; the gradients of each node += its gradient. `samples`: of
  /// the global batch. Each of `ranks` adds an equal fraction of the penalty.
  void add_penalty(Context&, const LossLayer::Regularizer&, int64_t samples, int ranks, Tensor total) const;
  void add_penalty_gradients(Context&, size_t node, const LossLayer::Regularizer&, int64_t samples, int ranks) const;
  /// Freezes or unfreezes the weights of a layer, with their states.
  void freeze(const std::string& layer, bool frozen);
  /// Clips the gradients if the config says so, then updates weights and their copies in other dtypes.
  void update(Context&) const;
  Work work_of_update() const;
  /// All gradients, one flat f32 tensor.
  Tensor all_gradients() const { return gradients_.flat(); }
  /// The flat gradients without the given wgrads.
  std::vector<Tensor> gradients_without(std::span<const Tensor>) const;
  /// The range of each weight in all_gradients(), padding included, in order.
  std::vector<GradientRange> gradient_ranges() const;

  /// Writes the documented dense layout: every weight as f32, in order, nothing else. Also writes <path>.layout.json, a
  /// description of layers and shapes, which load() checks if it exists. Waits for the stream.
  void save(FileSet&, const std::filesystem::path&, StreamRef) const;
  /// Loads all weights, or only the given layers, found by the description in the file of any network. Errors:
  /// Error(data) when the size or the description does not fit this model, or lacks a layer; Error(io).
  void load(const std::filesystem::path&, Context&, const std::vector<std::string>& layers = {});
  /// The path of the description: "<file>.layout.json".
  static std::filesystem::path layout_path(std::filesystem::path dense_model_file);
  /// Writes and reads the optimizer states as HugeCTR 3.0 lays them out: each state of all weights, in the order of the
  /// dense file. Elements have 4 bytes; reading also accepts 2, as HugeCTR writes them in mixed precision. Errors: as
  /// save() and load().
  void save_opt_states(FileSet&, const std::filesystem::path&, StreamRef) const;
  void load_opt_states(const std::filesystem::path&, StreamRef);
  const ops::Optimizer& optimizer() const { return optimizer_; }

  /// For checkpoints: values and optimizer states.
  void save_state(StateWriter) const;
  void load_state(const StateReader&, Context&);

 private:
  struct Item {
    std::string name;  // "fc1/weights"
    size_t node;
    size_t value, gradient;  // tickets
    bool penalised;
    bool copied;                         // the layer reads the copy
    bool frozen;                         // not updated
    std::optional<size_t> transposed{};  // ticket of the transposed copy
  };
  /// Sets trained_.
  void find_trained();
  /// Rewrites all copies in other dtypes.
  void refresh_copies(Context&) const;
  void clip_gradients(Context&) const;
  /// Compares names and shapes with the description of a dense model file, if it exists. Errors: Error(data).
  void expect_layout(const std::filesystem::path&) const;
  template <class State>
  void visit_state(State&) const;
  void load_chosen(const std::filesystem::path&, int64_t size, const std::vector<std::string>& layers, Context&);
  void set_value(const Item&, const std::filesystem::path&, const std::string& bytes, size_t at, Context&) const;
  ReplicaUse use_;
  std::vector<Item> items_;                           // in file order
  std::vector<std::pair<int64_t, int64_t>> trained_;  // element ranges that are not frozen
  Arena values_, gradients_, copies_, transposed_, scratch_;
  std::optional<DType> copy_type_;  // dtype of copies_; none when every layer reads the weights themselves
  size_t penalty_scratch_, squares_;
  double most_norm_;  // maximum norm of all trained gradients; 0: unlimited
  std::vector<Arena> states_;
  ops::Optimizer optimizer_;
};

}  // namespace hctr
