// Tables in model files, as HugeCTR lays them out (hctr/formats.h).
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

/// How the rows of a file are laid out: key, slot id (where rows belong to slot and key), vector.
struct SparseLayout {
  int key_bytes = 8;   ///< 4: unsigned
  int slot_bytes = 0;  ///< 0: no slot id
  int64_t dim = 0;
  int64_t row_bytes() const { return key_bytes + slot_bytes + dim * 4; }
};

/// The layouts in which versions of HugeCTR wrote such files, those with keys of `key_bytes` first (0: 8 bytes).
std::vector<SparseLayout> known_layouts(bool with_slot, int64_t dim, int key_bytes);

/// The layout of a file of `bytes` bytes: the first known one whose rows fill it. Slot ids decide between layouts of
/// the same size: `slot_ids_fit` returns whether all slot ids of a layout are valid. Errors: Error(data) with the sizes
/// tried.
SparseLayout detect_layout(const std::filesystem::path&, int64_t bytes, const std::vector<SparseLayout>& known,
                           const std::function<bool(const SparseLayout&)>& slot_ids_fit);

/// Rows of a file, or some of them. Row i has key keys[i], slot slots[i] (none where rows belong to keys alone) and
/// elements [i * dim, (i + 1) * dim) of `vectors`.
struct SparseRows {
  std::vector<int64_t> keys;
  std::vector<uint64_t> slots;
  std::vector<float> vectors;
  int64_t of = 0;  ///< rows of the whole file
};

/// The properties that a file does not contain.
struct SparseFileShape {
  bool with_slot = false;
  int64_t dim = 0, slots = 0;
  int key_bytes = 8;  ///< key width to choose if a size fits several; 0: keys of 8 bytes, unless many of them
                      ///< would be negative
};

/// Calls sink(rows) for all rows of a file of any known layout, or of a folder of version 3.1, block by block. Returns
/// the number of rows. Logs a note when the size of the file fits keys of both widths. Errors: Error(io); Error(data)
/// naming file and size when the content is invalid.
int64_t read_sparse(const std::filesystem::path&, const SparseFileShape&,
                    const std::function<void(const SparseRows&)>& sink, const Log& = Log::silent());

/// The files that a table is saved to.
struct SparseTarget {
  fs::path path;  ///< path of the file, or with v3 of the folder
  ModelFormat format = ModelFormat::v2;
  int key_bytes = 8;  ///< 8, or 4 for data sets with 4-byte keys; of format v2
  fs::path states{};  ///< path of the optimizer states, which need `rows`; empty: not saved
  int64_t rows = 0;   ///< rows of the table, over all ranks
};
/// Writes all rows of finished steps, sorted by (slot, key): equal tables give equal files. The access statistics of a
/// table that keeps them go to a separate file (access_stats_file.h). All appear when the set is committed. Waits for
/// queued steps. Errors: Error(io); Error(data) naming a key that 4 bytes do not hold. Table: EmbeddingTable; or
/// Embedding, whose files are the same for any number of ranks: rank 0 writes them, the others call export_rows, which
/// an error of rank 0 does not break off.
template <class Table>
void save_sparse(FileSet&, Table&, const SparseTarget&);
/// A set of this file alone.
template <class Table>
void save_sparse(const fs::path& path, Table& table, int key_bytes) {
  FileSet set;
  save_sparse(set, table, {.path = path, .key_bytes = key_bytes});
  set.commit();
}

/// The files that a table is loaded from.
struct SparseOrigin {
  fs::path path;      ///< file or folder
  int key_bytes = 8;  ///< see SparseFileShape
  bool with_access_stats = false;
  fs::path states{};    ///< path of the optimizer states; empty: not loaded
  int64_t updates = 0;  ///< t of Adam for rows with loaded states
};
/// Loads what read_sparse() reads into a table that has no rows yet. A table with direct keys has all its rows: those
/// that the file lacks keep their initial values. Access statistics next to the file are loaded if the table keeps
/// them. Errors: those of read_sparse() and OptStatesReader; Error(data) when a key occurs twice. Every rank of an
/// Embedding reads the files and keeps its own rows. Returns whether a key of the file does not fit 4 bytes.
template <class Table>
bool load_sparse(Table&, const SparseOrigin&, const Log& = Log::silent());
/// Whether there are access statistics next to the file.
bool has_access_stats(const fs::path&);
template <class Table>
void load_sparse(const fs::path& path, Table& table, int key_bytes) {
  load_sparse(table, {.path = path, .key_bytes = key_bytes, .with_access_stats = has_access_stats(path)});
}

}  // namespace hctr
