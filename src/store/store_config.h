// Reads store.json, or the ps.json of HugeCTR's parameter server: the levels and models of a store.
#pragma once

#include <string>
#include <vector>

#include "config/problems.h"
#include "config/schema.h"
#include "hctr/store.h"

namespace hctr {

/// A table in store.json; the fields that are set determine the source of its rows.
struct StoreTableSection {
  std::string name, model_file, file, keys, vectors;
  int64_t dim = 0;
  bool by_slot = false;
  double default_value = 0;
};

struct StoreModelSection {
  std::string name;
  std::string version = "1";
  std::string model;    ///< a run folder, a checkpoint, or a snapshot_prefix: the source of all tables
  std::string updates;  ///< a snapshot_prefix whose deltas "store load" applies
  bool miss_is_error = false;
  std::vector<StoreTableSection> tables;
};

struct StoreConfig {
  std::string folder;  ///< of the level of files; empty: none
  bool memory = true;
  int64_t most_rows = 0;
  int64_t update_rows_per_second = 0;
  std::vector<StoreModelSection> models;

  StoreOptions options() const;
};

/// The schema of store.json.
const Schema<StoreConfig>& store_schema();

/// Reads either kind: a file with "supportlonglong" is a ps.json. Unknown keys are errors that name the nearest valid
/// one. `notes` gets fields without effect here, and differences from HugeCTR. Errors: Error(config) with every
/// problem; Error(io).
StoreConfig read_store_config(const std::filesystem::path&, std::vector<std::string>& notes);
/// The same of a ps.json that is parsed already.
StoreConfig read_ps_config(const Json&, Problems&);

}  // namespace hctr
