// Saves and loads tables as model files in HugeCTR's layouts (hctr/formats.h).
#pragma once

#include <cstdint>

#include "core/base/files.h"
#include "core/base/log.h"
#include "engine/exchange/rank_embedding.h"
#include "formats/model/sparse_writer.h"

namespace hctr {

/// The files that a table is saved to.
struct SparseTarget {
  fs::path path;  ///< path of the file (v2) or the folder (v3)
  ModelFormat format = ModelFormat::v2;
  int key_bytes = 8;  ///< v2 only: 8, or 4 for data sets with 4-byte keys
  fs::path states{};  ///< path of the optimizer states; empty: not saved; if set, set `rows`, too
  int64_t rows = 0;   ///< number of rows over all ranks
};
/// Writes all rows sorted by (slot, key), so that equal tables yield equal files. Access statistics, if the table keeps
/// them, go to a separate file (access_stats_file.h). Files become visible when the set is committed. Waits for queued
/// steps. Errors: Error(io); Error(data) naming a key that exceeds 4 bytes. Table: EmbeddingTable, or Embedding, whose
/// files do not depend on the number of ranks. For an Embedding, rank 0 writes and the other ranks call export_rows(),
/// which completes even if rank 0 has an error.
template <class Table>
void save_sparse(FileSet&, Table&, const SparseTarget&);
/// Saves a table as a single file, committed immediately.
template <class Table>
void save_sparse(const fs::path& path, Table& table, int key_bytes) {
  FileSet set;
  save_sparse(set, table, {.path = path, .key_bytes = key_bytes});
  set.commit();
}

/// The files that a table is loaded from.
struct SparseOrigin {
  fs::path path;      ///< a file (v2) or a folder (v3)
  int key_bytes = 8;  ///< see SparseFileShape
  bool with_access_stats = false;
  fs::path states{};    ///< path of the optimizer states; empty: not loaded
  int64_t updates = 0;  ///< step count t of Adam for the rows whose states are loaded
};
/// Loads the rows of read_sparse() into a table without rows. A table with direct keys has all rows from the start;
/// rows missing in the file keep their initial values. Also loads access statistics if the table keeps them. Every rank
/// of an Embedding reads the files and keeps its own rows. Returns whether some key exceeds 4 bytes. Errors: those of
/// read_sparse() and OptStatesReader; Error(data) for a duplicate key.
template <class Table>
bool load_sparse(Table&, const SparseOrigin&, const Log& = Log::silent());
/// Whether a file of access statistics exists for the model file.
bool has_access_stats(const fs::path&);
template <class Table>
void load_sparse(const fs::path& path, Table& table, int key_bytes) {
  load_sparse(table, {.path = path, .key_bytes = key_bytes, .with_access_stats = has_access_stats(path)});
}

}  // namespace hctr
