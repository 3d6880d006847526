// A whole config file, read and judged clause by clause.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/json.h"
#include "config/problems.h"
#include "data/clause.h"
#include "embedding/clause.h"
#include "layers/layer_type.h"
#include "model/solver_clause.h"
#include "optim/clause.h"

namespace hctr {

/// An entry of "layers" that is a dense layer or loss, not yet connected.
struct LayerEntry {
  std::string pointer;  ///< "/layers/3"
  const LayerType* type = nullptr;
  std::vector<std::string> bottoms, tops;
  std::shared_ptr<const Layer> layer;  ///< shared: the bindings for training and evaluation run the same object
};

struct EmbeddingEntry {
  std::string pointer;
  EmbeddingClause clause;
};

struct Config {
  SolverClause solver;
  OptimizerClause optimizer;
  DataClause data;
  std::vector<EmbeddingEntry> embeddings;
  std::vector<std::string> lost_tops;  ///< names that layers of no known type would have made
  std::vector<LayerEntry> layers;      ///< in the order of the file, which is the order of the dense model file
  /// The config with every default filled in, for records.
  Json effective;
};

/// Reads what can be read; everything wrong goes to `problems`.
Config read_config(const Json&, Problems&);

}  // namespace hctr
