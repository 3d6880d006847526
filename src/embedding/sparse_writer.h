// Writes the rows of a table to model files, in the layouts of HugeCTR (hctr/formats.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "config/values.h"
#include "embedding/table.h"

namespace hctr {

/// v2: a file of rows, as HugeCTR 2.x and 3.0 read it. v3: a folder with a file for each of keys, slot ids and vectors,
/// as later versions do.
enum class ModelFormat { v2, v3 };
template <>
struct EnumWords<ModelFormat> {
  static const std::vector<std::pair<std::string, ModelFormat>>& table();
};

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
