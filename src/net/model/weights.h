// The dense weights of one replica, with their gradients, optimizer states and file.
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

/// Elements [begin, end) of all gradients: the gradient of one weight of `node`.
struct GradientRange {
  size_t node;
  int64_t begin, end;
};

/// A tensor of the model with its name in files, such as "fc1/weights".
struct NamedTensor {
  std::string name;
  Tensor value;
};

/// The purpose of a replica. `train`: has gradients and optimizer states. `score`: has no gradients and states.
/// `score_dense`: also has no tables; the vectors come from the caller.
enum class ReplicaUse { train, score, score_dense };

class Weights {
 public:
  /// Draws initial values from the runtime's seed and each weight's name. Weights have the order of the config's
  /// layers.
  Weights(const Config&, const Graph&, Runtime&, ReplicaUse = ReplicaUse::train);

  /// The tensors that the node's layer reads: the weights, or copies of them in the dtype of the layer's outputs.
  std::vector<Tensor> of_node(size_t node) const;
  /// [weight of the node] the memory of LayerIo::transposed, which Network::forward() writes.
  std::vector<std::optional<Tensor>> transposed_of_node(size_t node) const;
  std::vector<Tensor> gradients_of_node(size_t node) const;

  /// All weights, f32, in the order of the dense model file.
  std::vector<NamedTensor> values() const;

  /// Adds the penalty of all penalised weights to total[0], and the penalty's gradient to the gradients of these
  /// weights. `samples`: the size of the global batch. Each of `ranks` adds an equal fraction of the penalty.
  void add_penalty(Context&, const LossLayer::Regularizer&, int64_t samples, int ranks, Tensor total) const;
  void add_penalty_gradients(Context&, size_t node, const LossLayer::Regularizer&, int64_t samples, int ranks) const;
  /// Freezes or unfreezes the weights and optimizer states of a layer.
  void freeze(const std::string& layer, bool frozen);
  /// Clips the gradients if the config asks for it. Then updates the weights and their copies in other dtypes.
  void update(Context&) const;
  Work work_of_update() const;
  /// All gradients as one flat f32 tensor.
  Tensor all_gradients() const { return gradients_.flat(); }
  /// All gradients except the given wgrads, as parts of the flat tensor.
  std::vector<Tensor> gradients_without(std::span<const Tensor>) const;
  /// The range of each weight, including padding, in all_gradients(), in order.
  std::vector<GradientRange> gradient_ranges() const;

  /// Writes the documented dense layout: all weights as f32, in order. Also writes <path>.layout.json, which describes
  /// layers and shapes; load() checks the description if it exists. Waits for the stream.
  void save(FileSet&, const std::filesystem::path&, StreamRef) const;
  /// Loads all weights, or the weights of the given layers. Given layers are found by name in the description of the
  /// file, which may belong to another network. Errors: Error(data) if the size or the description does not fit this
  /// model, or if a layer is missing; Error(io).
  void load(const std::filesystem::path&, Context&, const std::vector<std::string>& layers = {});
  /// The path of the layout description: "<file>.layout.json".
  static std::filesystem::path layout_path(std::filesystem::path dense_model_file);
  /// Writes and reads optimizer states in the layout of HugeCTR 3.0: for each state, the values of all weights in the
  /// order of the dense file. Elements have 4 bytes. Files with 2-byte elements, which HugeCTR writes in mixed
  /// precision, can be read too. Errors: as save() and load().
  void save_opt_states(FileSet&, const std::filesystem::path&, StreamRef) const;
  void load_opt_states(const std::filesystem::path&, StreamRef);
  const ops::Optimizer& optimizer() const { return optimizer_; }

  /// For checkpoints: values and optimizer states.
  void save_state(StateWriter) const;
  void load_state(const StateReader&, Context&);

 private:
  struct Item {
    std::string name;  // for example "fc1/weights"
    size_t node;
    size_t value, gradient;  // tickets in values_ and gradients_
    bool penalised;
    bool copied;                         // whether the layer reads a copy
    bool frozen;                         // true: updates skip the weight
    std::optional<size_t> transposed{};  // ticket in transposed_ of the transposed copy
  };
  /// Sets trained_.
  void find_trained();
  /// Rewrites all copies in other dtypes.
  void refresh_copies(Context&) const;
  void clip_gradients(Context&) const;
  /// Compares names and shapes with the layout description of a dense model file, if the description exists. Errors:
  /// Error(data).
  void expect_layout(const std::filesystem::path&) const;
  template <class State>
  void visit_state(State&) const;
  void load_chosen(const std::filesystem::path&, int64_t size, const std::vector<std::string>& layers, Context&);
  void set_value(const Item&, const std::filesystem::path&, const std::string& bytes, size_t at, Context&) const;
  ReplicaUse use_;
  std::vector<Item> items_;                           // in the order of the dense model file
  std::vector<std::pair<int64_t, int64_t>> trained_;  // element ranges that are not frozen
  Arena values_, gradients_, copies_, transposed_, scratch_;
  std::optional<DType> copy_type_;  // dtype of copies_; none if every layer reads the weights themselves
  size_t penalty_scratch_, squares_;
  double most_norm_;  // maximum norm of all trained gradients together; 0: unlimited
  std::vector<Arena> states_;
  ops::Optimizer optimizer_;
};

}  // namespace hctr
