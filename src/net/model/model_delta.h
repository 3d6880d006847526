// Deltas of models. A delta contains the dense part and, for each table, the rows that changed and the keys that were
// removed since the previous model. apply_deltas() makes a newer model from an older model and deltas.
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

/// A delta while it is written. The folder formats::delta_name() appears when the delta is complete. Only one rank has
/// this object. Call members in the order of declaration; write() may run on any thread. Errors: Error(io); Error(data)
/// if a row is not finite.
class PendingDelta {
 public:
  PendingDelta(const std::string& prefix, int64_t iteration, SavedDelta, ModelFormat);
  /// Removes the files of an incomplete delta.
  ~PendingDelta();
  PendingDelta(const PendingDelta&) = delete;
  PendingDelta& operator=(const PendingDelta&) = delete;

  FileSet& files() { return *files_; }
  /// The path prefix of the files while the delta is incomplete.
  std::string prefix() const { return part_.string() + "/"; }
  fs::path dense_path() const;
  const fs::path& folder() const { return folder_; }

  void begin_table(const TableSpec&, int64_t counted_steps);
  /// Adds rows. Rows must be sorted by (slot, key).
  void add(const RowBlock&);
  /// `rows`: the number of rows of the whole table.
  void end_table(const std::vector<SlotKey>& removed, int64_t rows);
  void set_manifest(ModelManifest);
  void write();
  const SavedDelta& about() const { return about_; }

 private:
  struct Table {
    SparseWriter rows;
    std::optional<AccessStatsWriter> stats;
    std::vector<RowCopies> kept{};  // rows to be written
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

/// Removes unfinished delta folders of killed runs. `prefix`: the solver's snapshot_prefix. Errors: Error(io).
void remove_unfinished_deltas(const std::string& prefix);

/// The result of apply_deltas().
struct AppliedDeltas {
  int64_t iteration = 0;
  /// counts of each table: `rows` is that of the new model; `changed` and `removed` are sums over all deltas
  std::vector<SavedDelta::Table> tables{};
};

/// Applies the deltas in `deltas`, in order, to the full model with the given dense file, and saves the resulting model
/// at `prefix`. The files are byte for byte those of a full model that training saves at that iteration, without
/// optimizer states. Memory: the rows of the deltas, and the access statistics of one table. Errors: Error(data) if a
/// delta does not build on the preceding model or a file is damaged; Error(io).
AppliedDeltas apply_deltas(const fs::path& dense_model, const std::vector<fs::path>& deltas, const std::string& prefix);

/// The keys of a table in a delta, for printing.
struct DeltaKeys {
  std::vector<SlotKey> changed, removed;
};
/// The keys of table `number` in the delta with this manifest. Errors: Error(io), Error(data).
DeltaKeys keys_of_delta(const ModelManifest&, size_t number);

}  // namespace hctr
