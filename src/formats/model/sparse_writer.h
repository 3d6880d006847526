// Writes the rows of a table to model files in HugeCTR's layouts (hctr/formats.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/sections/model_format.h"
#include "core/base/files.h"
#include "engine/table/table.h"

namespace hctr {

/// Writes rows in blocks. Errors of all members: Error(io); Error(data) for an element that is not finite, or a key
/// that exceeds its width.
class SparseWriter {
 public:
  /// `path`: the file (v2) or the folder (v3). `key_bytes`: 8 or 4, for v2. The set must outlive the writer. Of `spec`,
  /// only name, dim and identity are used.
  SparseWriter(FileSet& set, const fs::path& path, const TableSpec& spec, ModelFormat, int key_bytes);
  /// Adds a block of rows; blocks are in file order. Optimizer states in the block are ignored.
  void add(const RowBlock&);
  /// Completes the files after the last block.
  void finish();

 private:
  fs::path path_;
  std::string name_;
  size_t dim_;
  bool with_slot_;
  ModelFormat format_;
  int key_bytes_;
  AtomicFile* rows_ = nullptr;  // v2 only
  AtomicFile *keys_ = nullptr, *slots_ = nullptr, *vectors_ = nullptr;
  std::vector<std::byte> bytes_;
};

}  // namespace hctr
