// Reads the rows of model files in HugeCTR's layouts (hctr/formats.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "core/base/log.h"

namespace hctr {

class ThreadPool;

inline constexpr const char* kSparseModelFile = "sparse model file";  ///< the file type, for messages

/// The layout of rows in a file: key, slot id (if rows are identified by slot and key), vector.
struct SparseLayout {
  int key_bytes = 8;   ///< 8 (signed) or 4 (unsigned)
  int slot_bytes = 0;  ///< 0: rows have no slot id
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
  /// The key width to assume if several widths fit the file size. 0: assume 8 bytes, or 4 if many 8-byte keys would be
  /// negative.
  int key_bytes = 8;
  bool with_vectors = true;  ///< false: blocks have no vectors
};

/// Calls sink(rows) for all rows of a file in any known layout, or of a HugeCTR 3.1 folder, in blocks, in the order of
/// the file. Returns the number of rows. Logs a note if the file size fits both key widths. `threads` read a block
/// together; null: the calling thread reads alone. Errors: Error(io); Error(data) naming file and size if the content
/// is invalid.
int64_t read_sparse(const std::filesystem::path&, const SparseFileShape&,
                    const std::function<void(const SparseRows&)>& sink, const Log& = Log::silent(),
                    ThreadPool* threads = nullptr);

}  // namespace hctr
