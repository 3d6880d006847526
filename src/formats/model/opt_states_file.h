// The optimizer states of a table in a file next to its rows, as HugeCTR 3.0 lays them out (hctr/formats.h): for each
// state the numbers of all rows, in the order of the file of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/files.h"
#include "engine/table/table.h"

namespace hctr {

/// Errors of all members: Error(io); Error(data) when a state holds a number that is not finite.
class OptStatesWriter {
 public:
  /// For a table of `rows` rows. The set outlives the writer.
  OptStatesWriter(FileSet& set, const fs::path& path, const TableSpec& spec, int64_t rows);
  void add(const RowBlock&);
  /// After the last block. Errors: Error(bug) if there were other than `rows` rows.
  void finish();

 private:
  AtomicFile& file_;
  std::string name_;
  int64_t states_, dim_, rows_, done_ = 0;
};

/// Numbers of 4 bytes; or, as HugeCTR writes them in mixed precision, of 2. Errors of all members: Error(io);
/// Error(data) naming the file.
class OptStatesReader {
 public:
  /// `rows`: of `model_file`, the file that the states belong to. Error(data) when the size is not that of their
  /// states.
  OptStatesReader(const fs::path& path, const TableSpec& spec, int64_t rows, const fs::path& model_file);

  /// Reads the states of the next rows and sets them in the block. Error(data) when the rows are not in saved order, by
  /// (slot, key): files of states do not record which row a state belongs to. The block's pointers are valid until the
  /// next call.
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
