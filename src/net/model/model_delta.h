// Deltas of models: the dense part, and of each table the rows that have changed since the model before and the keys
// whose rows are gone; and how deltas make a newer model of an older one.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "engine/table/gather_rows.h"
#include "formats/model/access_stats_file.h"
#include "formats/model/model_manifest.h"
#include "formats/model/sparse_writer.h"

namespace hctr {

/// A delta on its way to its folder, formats::delta_name(), which appears when it is complete. On one rank; members are
/// called in this order, write() by any thread. Errors: Error(io); Error(data) when a row is not finite.
class PendingDelta {
 public:
  PendingDelta(const std::string& prefix, int64_t iteration, SavedDelta, ModelFormat);
  /// Removes what was not completed.
  ~PendingDelta();
  PendingDelta(const PendingDelta&) = delete;
  PendingDelta& operator=(const PendingDelta&) = delete;

  FileSet& files() { return *files_; }
  /// Of the files, until they are complete.
  std::string prefix() const { return part_.string() + "/"; }
  fs::path dense_path() const;
  const fs::path& folder() const { return folder_; }

  void begin_table(const TableSpec&, int64_t counted_steps);
  /// Rows in the order of (slot, key).
  void add(const RowBlock&);
  /// `rows`: of the whole table.
  void end_table(const std::vector<SlotKey>& removed, int64_t rows);
  void set_manifest(ModelManifest);
  void write();
  const SavedDelta& about() const { return about_; }

 private:
  struct Table {
    SparseWriter rows;
    std::optional<AccessStatsWriter> stats;
    std::vector<RowCopies> kept{};  // rows that are not written yet
    void write(const RowBlock&);
    void write_kept();
  };
  fs::path folder_, part_;
  int64_t iteration_;
  SavedDelta about_;
  ModelFormat format_;
  std::optional<FileSet> files_;
  AtomicFile* to_manifest_;
  std::deque<Table> tables_;
  int64_t kept_bytes_ = 0, most_kept_bytes_;
  ModelManifest manifest_;
  bool complete_ = false;
};

/// Removes folders of deltas that a run was killed in. `prefix`: as snapshot_prefix. Errors: Error(io).
void remove_unfinished_deltas(const std::string& prefix);

/// What apply_deltas() has made.
struct AppliedDeltas {
  int64_t iteration = 0;
  std::vector<SavedDelta::Table> tables{};  ///< rows of the new model; changed and removed by all deltas together
};

/// Applies deltas, given by their folders in their order, to the whole model whose dense file is given, and saves the
/// model of the last one at `prefix`: the files that training would have saved as a whole model at that iteration, byte
/// for byte, without optimizer states. Memory: the rows of the deltas, and the access statistics of one table.
/// Errors: Error(data) when a delta does not build on the model before it, or a file is damaged; Error(io).
AppliedDeltas apply_deltas(const fs::path& dense_model, const std::vector<fs::path>& deltas, const std::string& prefix);

/// Keys of a table in a delta, for people.
struct DeltaKeys {
  std::vector<SlotKey> changed, removed;
};
/// Of table `number` in the delta of this manifest. Errors: Error(io), Error(data).
DeltaKeys keys_of_delta(const ModelManifest&, size_t number);

}  // namespace hctr
