// Sends long vectors by copy engines, in pieces of some samples each: while copy engines send a piece, the look-up
// writes the next one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/stream.h"
#include "ops/embedding/vector_blocks.h"

namespace hctr {

class VectorCopies {
 public:
  /// A range of samples, the same for each rank of samples, and the copies of its vectors to the other ranks.
  struct Piece {
    int64_t begin = 0, count = 0;
    std::vector<ops::VectorBlock> copies;
  };
  VectorCopies(Runtime&, std::vector<Piece>);

  const std::vector<Piece>& pieces() const { return pieces_; }
  /// Starts the copies of a piece after the work queued on the context so far.
  void start(Context&, size_t piece);
  /// Makes the context wait for all started copies.
  void join(Context&);

 private:
  std::vector<Piece> pieces_;
  Stream stream_;
  std::vector<Event> written_;  // [piece]
  Event sent_;
};

/// The samples of each piece. The first piece is small, so that the links are soon busy. Later pieces are as large as
/// the look-up can write while the one before is sent.
std::vector<VectorCopies::Piece> vector_pieces(int64_t samples);

}  // namespace hctr
