// The files of a set as one stream of chunks, pass after pass.
#pragma once

#include <optional>
#include <vector>

#include "data/reader/reader_position.h"
#include "data/sample_set.h"

namespace hctr {

/// How a set is gone through.
struct Passage {
  bool repeat = false;
  bool shuffle_files = false;  ///< each pass visits the files in an order of its own
  uint64_t seed = 0;           ///< that decides the order, together with the pass
};

/// The order in which pass `pass` visits `files` files.
std::vector<size_t> file_order(size_t files, int64_t pass, const Passage&);

/// Not thread-safe: its user takes turns.
class ChunkSource {
 public:
  /// Starts at the chunk where `from` lies. Errors: Error(data) when there is no such place in the set.
  ChunkSource(SampleSet&, const Passage&, const ReaderPosition& from);

  /// Fills `chunk`; false at the end of the last file, never when repeating. Errors: those of the format.
  bool next(Chunk& chunk);
  /// Of the chunk that next() gave last: the pass, and which file of the pass it belongs to.
  int64_t pass() const { return pass_; }
  int64_t file() const { return next_file_ - 1; }

 private:
  void open(int64_t file, Place from);

  SampleSet& set_;
  Passage passage_;
  std::vector<size_t> order_;
  std::unique_ptr<Cutter> open_;
  int64_t next_file_ = 0, pass_ = 0;
};

}  // namespace hctr
