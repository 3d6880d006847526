// Writes the rows of a table to model files, in the layouts of HugeCTR (hctr/formats.h).
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

/// Errors of all members: Error(io); Error(data) when a row holds a number that is not finite, or a key that does not
/// fit.
class SparseWriter {
 public:
  /// `path`: of the file, or of the folder. `key_bytes`: 8, or 4; of format v2. The set outlives the writer. Only name,
  /// dim and identity of `spec` are used.
  SparseWriter(FileSet& set, const fs::path& path, const TableSpec& spec, ModelFormat, int key_bytes);
  /// Blocks in the order of the file; optimizer states are not read.
  void add(const RowBlock&);
  /// After the last block.
  void finish();

 private:
  fs::path path_;
  std::string name_;
  size_t dim_;
  bool with_slot_;
  ModelFormat format_;
  int key_bytes_;
  AtomicFile* rows_ = nullptr;  // v2
  AtomicFile *keys_ = nullptr, *slots_ = nullptr, *vectors_ = nullptr;
  std::vector<std::byte> bytes_;
};

}  // namespace hctr
