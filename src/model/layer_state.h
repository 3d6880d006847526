// State of the layers of one replica besides weights: running statistics, and their file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "checkpoint/state_reader.h"
#include "checkpoint/state_writer.h"
#include "device/arena.h"
#include "model/graph.h"

namespace hctr {

/// The network for training writes it, the one for evaluation reads it.
class LayerState {
 public:
  LayerState(const Config&, const Graph&, Runtime&);

  std::vector<Tensor> of_node(size_t node) const;
  /// Whether no layer has state.
  bool empty() const { return layers_.empty(); }

  /// {"layers": [{"type": "BatchNorm", "mean": [...], "var": [...], ...}, ...]}: the layers that have state, in
  /// the order of the config, with every digit. Waits for the stream.
  void save(FileSet&, const std::filesystem::path&, StreamRef) const;
  /// Of a list that is twice as long as it should be, as HugeCTR 3.0 writes it in mixed precision, the first half is
  /// taken, and the log says so. Errors: Error(data) when the file does not fit this model, Error(io).
  void load(const std::filesystem::path&, StreamRef, const Log& = Log::silent());

  /// For checkpoints.
  void save_state(StateWriter to) const { visit_state(to); }
  void load_state(const StateReader& from) { visit_state(from); }

  /// The path for a dense model file: "<file>.ntp.json".
  static std::filesystem::path path_for(std::filesystem::path dense_model_file);

 private:
  struct Item {
    StateSpec spec;
    size_t ticket;
  };
  template <class State>
  void visit_state(State& state) const {
    for (const LayerItems& layer : layers_)
      for (const Item& item : layer.items) state.tensor(layer.name + "/" + item.spec.name, arena_.get(item.ticket));
  }
  struct LayerItems {
    std::string name, type;
    size_t node;
    std::vector<Item> items;
  };
  std::vector<LayerItems> layers_;  // in the order of the config
  Arena arena_;
};

}  // namespace hctr
