// The files of a set as one stream of chunks, pass after pass.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "formats/data/sample_set.h"
#include "formats/reader/reader_position.h"

namespace hctr {

/// How the passes over a set run.
struct PassOptions {
  bool repeat = false;
  bool shuffle_files = false;  ///< each pass visits the files in an order of its own
  uint64_t seed = 0;           ///< seed of that order, together with the number of the pass
};

/// The order in which pass `pass` visits `files` files.
std::vector<size_t> file_order(size_t files, int64_t pass, const PassOptions&);

/// Not thread-safe.
class ChunkSource {
 public:
  /// Starts at the chunk of `from`. Errors: Error(data) when the set has no such file.
  ChunkSource(SampleSet&, const PassOptions&, const ReaderPosition& from);

  /// Fills `chunk`; false at the end of the last file, never when repeating. Errors: those of the format.
  bool next(Chunk& chunk);
  /// next() then returns false, also while it waits for a file that does not exist yet. Any thread may call it.
  void close();
  /// The pass of the last chunk, and the index of its file in the order of that pass.
  int64_t pass() const { return pass_; }
  int64_t file() const { return next_file_ - 1; }

 private:
  void open(int64_t file, FilePosition from);
  /// The index of a file in the set.
  size_t index_of(int64_t file) const {
    return set_.grows() ? static_cast<size_t>(file) : order_[static_cast<size_t>(file)];
  }

  SampleSet& set_;
  PassOptions pass_options_;
  std::vector<size_t> order_;  // empty for a set that grows
  FilePosition begin_;         // begin of the next file to open
  std::atomic<bool> closed_ = false;
  std::unique_ptr<Cutter> open_;
  int64_t next_file_ = 0, pass_ = 0;
};

}  // namespace hctr
