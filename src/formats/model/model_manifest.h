// The manifest of a set of model files, <prefix>_model_<iteration>.json: which files belong together, and their
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

/// A manifest's entry for a table. The number in its file names is its index in the list.
struct SavedTable {
  std::string name;
  int64_t dim = 0;
  bool by_slot = false;  ///< rows belong to slot and key
};

/// The tables in the manifest of a delta.
struct SavedDelta {
  int64_t base = 0;   ///< the iteration of the earlier model, full or a delta, whose changes this has
  int key_bytes = 8;  ///< bytes of a key in row files of version 2
  struct Table {
    int64_t rows = 0;     ///< rows of the whole table at this iteration
    int64_t changed = 0;  ///< rows in the delta's file, new ones included
    int64_t removed = 0;
  };
  std::vector<Table> tables{};
};

struct ModelManifest {
  struct Member {
    std::string name;  ///< the name after the prefix, as "_dense_60.model"
    FileChecksum checksum;
  };

  std::string run;           ///< the id of the run; empty if a program without one has saved the set
  std::string run_folder{};  ///< the folder's name; empty: unknown
  int64_t iteration = 0;     ///< finished updates, skipped ones included
  int64_t updates = 0;       ///< t of Adam
  Json config{}, data{};     ///< the config with every default filled in; the fingerprint of the training data
  std::vector<SavedTable> tables{};
  std::vector<ColumnStatistics> statistics{};  ///< statistics of dense columns in the model's training
  std::optional<SavedDelta> delta{};           ///< none: the model is whole
  std::vector<Member> members{};
  fs::path path{};       ///< where it was read
  std::string prefix{};  ///< prefix of the set next to it

  /// The name of a file of the set; empty for one that does not start with the prefix.
  std::string name_of(const fs::path&) const;
  /// The table of "<k>_sparse_60.model" or "<k>_opt_sparse_60.model"; null for other files.
  const SavedTable* table_of(std::string_view name) const;
  /// Reads a member and all that belong to it: "_dense_60.model" and "_dense_60.model.layout.json". Errors: Error(io)
  /// naming the one that is missing; Error(data) naming the one whose size or checksum is not that of the manifest.
  void verify(std::string_view name) const;
};

/// Writes the manifest of all other files of the set into one of its files, and completes all of them. Members are
/// those files; path is not read. Errors: Error(io).
void write_model_manifest(FileSet&, AtomicFile& to, ModelManifest);

/// The manifest next to a model file, or folder, with a name as it was saved or with another prefix; nothing where
/// there is none. Errors: Error(io); Error(data) naming a manifest that is damaged, or does not list the file.
std::optional<ModelManifest> manifest_of(const fs::path& model_file);

/// The manifest in the folder of a delta. Errors: Error(io), Error(data) where it is none or is damaged.
ModelManifest delta_manifest(const fs::path& folder);

}  // namespace hctr
