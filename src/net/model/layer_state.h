// The state of one replica's layers that is not a weight, such as running statistics, and the file of this state.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"
#include "core/device/arena.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "net/graph/graph.h"
#include "net/model/weights.h"

namespace hctr {

/// The training network writes the state, the evaluation network reads it.
class LayerState {
 public:
  LayerState(const Config&, const Graph&, Runtime&);

  std::vector<Tensor> of_node(size_t node) const;
  /// All state tensors ("bn1/mean", ...), in the order of the config.
  std::vector<NamedTensor> values() const;
  /// True if no layer has state.
  bool empty() const { return layers_.empty(); }

  /// Writes {"layers": [{"type": "BatchNorm", "mean": [...], "var": [...], ...}, ...]}: the layers with state, in the
  /// order of the config. Numbers have full precision. Waits for the stream.
  void save(FileSet&, const std::filesystem::path&, StreamRef) const;
  /// Loads the state file. HugeCTR 3.0 writes lists of twice the expected length in mixed precision; of such a list,
  /// reads the first half and logs this. Errors: Error(data) if the file does not fit this model; Error(io).
  void load(const std::filesystem::path&, StreamRef, const Log& = Log::silent());
  /// Loads the state of the named layers from the file of any network. Layers that are not named keep their initial
  /// state. Logs the named layers that the file lacks.
  void load_layers(const std::filesystem::path&, const std::vector<std::string>& layers, StreamRef, const Log&);

  /// Checkpoints save and load all state tensors.
  void save_state(StateWriter to) const { visit_state(to); }
  void load_state(const StateReader& from) { visit_state(from); }

  /// The path of the state file that belongs to a dense model file: "<file>.ntp.json".
  static std::filesystem::path path_for(std::filesystem::path dense_model_file);

 private:
  struct Item {
    StateSpec spec;
    size_t ticket;
  };
  struct LayerItems {
    std::string name, type;
    size_t node;
    std::vector<Item> items;
  };
  template <class State>
  void visit_state(State& state) const {
    for (const LayerItems& layer : layers_)
      for (const Item& item : layer.items) state.tensor(layer.name + "/" + item.spec.name, arena_.get(item.ticket));
  }
  /// Reads the values of each state of one layer from the layer's entry in the file. Errors: Error(data) if the entry
  /// describes another layer.
  static std::vector<std::vector<float>> read_layer(const Json& object, const LayerItems&, size_t number,
                                                    const std::filesystem::path&, const Log&);
  void set_values(const LayerItems&, const std::vector<std::vector<float>>&, StreamRef);
  std::vector<LayerItems> layers_;  // in the order of the config
  Arena arena_;
};

}  // namespace hctr
