// A rank of a group that shares the tables of embedding sets.
#pragma once

#include <memory>

#include "core/comm/communicator.h"
#include "core/comm/rank_group.h"
#include "hctr/ranks.h"

namespace hctr {

struct EmbeddingRank::State {
  /// The ranks of this process.
  struct Group {
    Group(int ranks, std::unique_ptr<Processes> joined, const RankWaits&, const Environment&);
    std::unique_ptr<Processes> others;
    RankGroup ranks;
  };
  std::shared_ptr<Group> group;
  int rank = 0;

  State(std::shared_ptr<Group> of, int number) : group(std::move(of)), rank(number) {}
  /// The others do not wait for it any more.
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

/// What ranks do in errors that all throw.
inline constexpr const char* kUsingEmbeddings = "using embeddings";

/// The communicator of a set on this rank; null for a group of one, or none. Collective on GPUs. Errors: Error(comm);
/// Error(device) where this build cannot join GPUs.
std::unique_ptr<Communicator> make_communicator(const EmbeddingRank&, Device);

}  // namespace hctr
