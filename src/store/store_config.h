// store.json, and the ps.json of HugeCTR's parameter server: what a store consists of, and which models it has.
#pragma once

#include <string>
#include <vector>

#include "config/problems.h"
#include "config/schema.h"
#include "config/sections/stream_section.h"
#include "hctr/store.h"
#include "hctr/store_stream.h"

namespace hctr {

/// A table as store.json has it; which of its fields are given says where its rows come from.
struct StoreTableSection {
  std::string name, model_file, file, keys, vectors;
  int64_t dim = 0;
  bool by_slot = false;
  double default_value = 0;

  /// 0: it begins empty.
  int sources() const { return !model_file.empty() + !file.empty() + !(keys.empty() && vectors.empty()); }
};

struct StoreModelSection {
  std::string name;
  std::string version = "1";
  std::string model;      ///< a run folder, a checkpoint, or a snapshot_prefix: its tables are all of that model
  std::string updates;    ///< a snapshot_prefix whose deltas "store load" applies
  ConsumeSection stream;  ///< given: where updates come from through Kafka
  bool miss_is_error = false;
  std::vector<StoreTableSection> tables;

  StoreStreamOptions stream_options() const;
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

/// Reads either kind: one with "supportlonglong" is a ps.json. Unknown keys are errors with the nearest one that there
/// is. `notes` gets what has no effect here, and what is read otherwise than the original did. Errors: Error(config)
/// with every problem; Error(io).
StoreConfig read_store_config(const std::filesystem::path&, std::vector<std::string>& notes);
/// The same of a ps.json that is parsed already.
StoreConfig read_ps_config(const Json&, Problems&);

}  // namespace hctr
