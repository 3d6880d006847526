// The files of a set as one stream of chunks, in the order of the list.
#pragma once

#include <optional>
#include <vector>

#include "data/norm_file.h"

namespace hctr {

/// Not thread-safe: its user takes turns.
class ChunkSource {
 public:
  ChunkSource(std::vector<fs::path> files, const NormDemands&, bool repeat);

  /// Fills `chunk`; false at the end of the last file, never when repeating. Errors: those of NormFile.
  bool next(NormChunk& chunk);
  /// How often the end of the last file was passed.
  int64_t pass() const { return pass_; }

 private:
  std::vector<fs::path> files_;
  NormDemands demands_;
  bool repeat_;
  std::optional<NormFile> open_;
  size_t next_file_ = 0;
  int64_t pass_ = 0;
};

}  // namespace hctr
