// Saves and loads tables as model files in HugeCTR's layouts (hctr/formats.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"
#include "engine/exchange/rank_embedding.h"
#include "formats/model/sparse_writer.h"

namespace hctr {

/// The layout of rows in a file: key, slot id (if rows are identified by slot and key), vector.
struct SparseLayout {
  int key_bytes = 8;   ///< 4: unsigned
  int slot_bytes = 0;  ///< 0: no slot id
  int64_t dim = 0;
  int64_t row_bytes() const { return key_bytes + slot_bytes + dim * 4; }
};

/// The layouts that HugeCTR versions wrote. Layouts with keys of `key_bytes` come first; 0 means 8.
std::vector<SparseLayout> known_layouts(bool with_slot, int64_t dim, int key_bytes);

/// Detects the layout of a file with `bytes` bytes: the first known layout whose row size divides the file size.
/// `slot_ids_fit` returns whether all slot ids are valid in a layout, which distinguishes layouts of the same size.
/// Errors: Error(data) listing the row sizes tried.
SparseLayout detect_layout(const std::filesystem::path&, int64_t bytes, const std::vector<SparseLayout>& known,
                           const std::function<bool(const SparseLayout&)>& slot_ids_fit);

/// A block of rows from a file. Row i has key keys[i], slot slots[i] (`slots` is empty if the key alone identifies a
/// row) and elements [i * dim, (i + 1) * dim) of `vectors`.
struct SparseRows {
  std::vector<int64_t> keys;
  std::vector<uint64_t> slots;
  std::vector<float> vectors;
  int64_t of = 0;  ///< number of rows in the whole file
};

/// Properties of a table that its file does not record.
struct SparseFileShape {
  bool with_slot = false;
  int64_t dim = 0, slots = 0;
  /// Key width if the file size fits several. 0: 8 bytes, or 4 if many 8-byte keys would be negative.
  int key_bytes = 8;
};

/// Calls sink(rows) for all rows of a file in any known layout, or of a HugeCTR 3.1 folder, in blocks. Returns the
/// number of rows. Logs a note if the file size fits both key widths. Errors: Error(io); Error(data) naming file and
/// size if the content is invalid.
int64_t read_sparse(const std::filesystem::path&, const SparseFileShape&,
                    const std::function<void(const SparseRows&)>& sink, const Log& = Log::silent());

/// The files that a table is saved to.
struct SparseTarget {
  fs::path path;  ///< path of the file (v2) or the folder (v3)
  ModelFormat format = ModelFormat::v2;
  int key_bytes = 8;  ///< v2 only: 8, or 4 for data sets with 4-byte keys
  fs::path states{};  ///< path of the optimizer states, which requires `rows`; empty: not saved
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
  int64_t updates = 0;  ///< number of updates, t in Adam, for rows with loaded states
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
