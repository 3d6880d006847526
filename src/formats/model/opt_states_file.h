// The file with the optimizer states of a table, in HugeCTR 3.0's layout (hctr/formats.h): first one state of all rows,
// then the next state of all rows, and so on. Rows are in the same order as in the table's model file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/files.h"
#include "engine/table/table.h"

namespace hctr {

/// Writes optimizer states. Errors of all members: Error(io); Error(data) if a state is not finite.
class OptStatesWriter {
 public:
  /// `rows`: number of rows of the table. The set must outlive the writer.
  OptStatesWriter(FileSet& set, const fs::path& path, const TableSpec& spec, int64_t rows);
  void add(const RowBlock&);
  /// Completes the file after the last block. Errors: Error(bug) if the number of added rows is not `rows`.
  void finish();

 private:
  AtomicFile& file_;
  std::string name_;
  int64_t states_, dim_, rows_, done_ = 0;
};

/// Reads optimizer states in f32, or in f16 as HugeCTR writes with mixed precision. Errors of all members: Error(io);
/// Error(data) naming the file.
class OptStatesReader {
 public:
  /// `rows`: number of rows in `model_file`, the file of rows to which the states belong. Errors: Error(data) if the
  /// file size does not match.
  OptStatesReader(const fs::path& path, const TableSpec& spec, int64_t rows, const fs::path& model_file);

  /// Reads the states of the next rows and points the block to them. These pointers are valid until the next call.
  /// Errors: Error(data) if the rows are not sorted by (slot, key), because a file of states does not record the keys.
  void add_to(RowBlock&, std::span<const uint64_t> slots);

 private:
  std::vector<float> read(int64_t first, int64_t count);

  fs::path path_, model_file_;
  File file_;
  int64_t states_, dim_, rows_, bytes_each_ = 4, done_ = 0;
  int64_t last_key_ = 0;
  uint64_t last_slot_ = 0;
  std::vector<float> values_[ops::kMostStates];
};

}  // namespace hctr
