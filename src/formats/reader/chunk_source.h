// The files of a set as one stream of chunks over all passes.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "formats/data/sample_set.h"
#include "formats/reader/reader_position.h"

namespace hctr {

/// Options of the passes over a set.
struct PassOptions {
  bool repeat = false;
  bool shuffle_files = false;  ///< each pass visits the files in a different order
  uint64_t seed = 0;           ///< the order depends on seed and pass
};

/// The order in which pass `pass` visits `files` files, as file indices.
std::vector<size_t> file_order(size_t files, int64_t pass, const PassOptions&);

/// Not thread-safe.
class ChunkSource {
 public:
  /// Starts at the chunk of `from`. Errors: Error(data) if the set does not have the file of `from`.
  ChunkSource(SampleSet&, const PassOptions&, const ReaderPosition& from);

  /// Fills `chunk` with the next chunk. Returns false at the end of the last file. With `repeat`, there is no such end.
  /// Errors: those of the format.
  bool next(Chunk& chunk);
  /// Makes next() return false, even if it is waiting for a file that does not exist yet. Thread-safe.
  void close();
  /// The pass of the last chunk.
  int64_t pass() const { return pass_; }
  /// The file of the last chunk, as its position in the order of the pass.
  int64_t file() const { return next_file_ - 1; }

 private:
  void open(int64_t file, FilePosition from);
  /// The set's index of a file. `file`: position in the order of the pass.
  size_t index_of(int64_t file) const {
    return set_.grows() ? static_cast<size_t>(file) : order_[static_cast<size_t>(file)];
  }

  SampleSet& set_;
  PassOptions pass_options_;
  std::vector<size_t> order_;  // empty for a growing set
  FilePosition begin_;         // start position in the next file to open
  std::atomic<bool> closed_ = false;
  std::unique_ptr<Cutter> open_;
  int64_t next_file_ = 0, pass_ = 0;
};

}  // namespace hctr
