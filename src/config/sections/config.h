// A whole config file, read and checked section by section.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/json.h"
#include "config/problems.h"
#include "config/sections/embedding_section.h"
#include "config/sections/optimizer_section.h"
#include "config/sections/solver_section.h"
#include "formats/data/data_section.h"
#include "net/layers/layer_type.h"

namespace hctr {

/// A dense layer or loss of "layers", not connected yet.
struct LayerEntry {
  std::string pointer;  ///< "/layers/3"
  const LayerType* type = nullptr;
  std::vector<std::string> bottoms, tops;
  std::shared_ptr<const Layer> layer;  ///< shared by the bindings for training and evaluation
};

struct EmbeddingEntry {
  std::string pointer;
  EmbeddingSection section;
};

struct Config {
  SolverSection solver;
  OptimizerSection optimizer;
  DataSection data;
  std::vector<EmbeddingEntry> embeddings;
  std::vector<std::string> lost_tops;  ///< outputs of layers whose type is unknown
  std::vector<LayerEntry> layers;      ///< in the order of the file, which the dense model file has too
  /// The config with every default filled in, for records.
  Json effective;
};

/// Reads a config. Errors are added to `problems`; valid fields are filled in.
Config read_config(const Json&, Problems&);

}  // namespace hctr
