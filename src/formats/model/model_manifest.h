// The manifest of a set of model files, <prefix>_model_<iteration>.json: lists the files of one model with their
// checksums (hctr/formats.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/json.h"
#include "core/base/file_checksum.h"
#include "core/base/files.h"
#include "formats/data/column_statistics.h"

namespace hctr {

/// A table in the manifest. Its index in the list is the number in the table's file names.
struct SavedTable {
  std::string name;
  int64_t dim = 0;
  bool by_slot = false;  ///< rows are identified by slot and key
};

/// The part of a manifest that only deltas have.
struct SavedDelta {
  int64_t base = 0;   ///< iteration of the previous model (full or delta) on which this delta is based
  int key_bytes = 8;  ///< bytes per key in row files of format v2
  struct Table {
    int64_t rows = 0;     ///< rows of the whole table at this iteration
    int64_t changed = 0;  ///< rows in the delta's file, including new rows
    int64_t removed = 0;
  };
  std::vector<Table> tables{};
};

struct ModelManifest {
  struct Member {
    std::string name;  ///< file name without the prefix, such as "_dense_60.model"
    FileChecksum checksum;
  };

  std::string run;           ///< id of the run; empty if another program saved the model
  std::string run_folder{};  ///< name of the run's folder; empty: unknown
  int64_t iteration = 0;     ///< finished steps, including steps whose update was skipped
  int64_t updates = 0;       ///< updates that were not skipped; the step count t of Adam
  Json config{}, data{};     ///< config: with all defaults filled in; data: fingerprint of the training data
  std::vector<SavedTable> tables{};
  std::vector<ColumnStatistics> statistics{};  ///< statistics of dense columns used in training
  std::optional<SavedDelta> delta{};           ///< set for a delta; empty for a full model
  std::vector<Member> members{};
  fs::path path{};       ///< path from which the manifest was read
  std::string prefix{};  ///< path prefix of the model files that belong to the manifest

  /// The name of a model file without the prefix; empty if the path does not start with the prefix.
  std::string name_of(const fs::path&) const;
  /// The table to which a file "<k>_sparse_60.model" or "<k>_opt_sparse_60.model" belongs; null for other files.
  const SavedTable* table_of(std::string_view name) const;
  /// Verifies the checksum of a file and of all files whose names extend it: "_dense_60.model" and
  /// "_dense_60.model.layout.json". Errors: Error(io) naming a missing file; Error(data) naming a file with another
  /// size or checksum.
  void verify(std::string_view name) const;
};

/// Finishes every file of the set except `to`. Then writes a manifest to `to`: the fields of the given manifest, and
/// the name, size and checksum of each finished file. Errors: Error(io).
void write_model_manifest(FileSet&, AtomicFile& to, ModelManifest);

/// Finds the manifest next to a model file or folder, even if the model's files were renamed to another prefix. Empty
/// if there is no manifest. Errors: Error(io); Error(data) naming a manifest that is damaged or does not list the file.
std::optional<ModelManifest> manifest_of(const fs::path& model_file);

/// The manifest in the folder of a delta. Errors: Error(io), Error(data) if the manifest is missing or damaged.
ModelManifest delta_manifest(const fs::path& folder);

}  // namespace hctr
