// A whole config file, parsed and checked section by section.
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

/// A dense layer or loss of "layers" before its inputs are connected.
struct LayerEntry {
  std::string pointer;  ///< "/layers/3"
  const LayerType* type = nullptr;
  std::vector<std::string> bottoms, tops;
  std::shared_ptr<const Layer> layer;  ///< shared by the training and evaluation bindings
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
  std::vector<std::string> lost_tops;  ///< tops of layers whose type is unknown
  std::vector<LayerEntry> layers;      ///< in file order, which is also the order of the dense model file
  /// The config with all defaults filled in, for logs and saved files.
  Json effective;
};

/// Parses a config. Errors are added to `problems`; valid fields are set even if other fields are invalid.
Config read_config(const Json&, Problems&);

}  // namespace hctr
