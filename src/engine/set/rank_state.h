// A rank of a group that shares the tables of embedding sets.
#pragma once

#include <memory>
#include <optional>

#include "core/base/current_error.h"
#include "core/comm/collective_error.h"
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
  /// From now on the others do not wait for it.
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

/// The action that an error on all ranks names.
inline constexpr const char* kUsingEmbeddings = "using embeddings";

/// The communicators of a set on this rank; null for a group of one, or none. `host` exchanges host values: GPU
/// communicators time out on the interval between calls, and a caller may take long between calls.
struct SetCommunicators {
  std::unique_ptr<Communicator> device, host;
};
/// Collective on GPUs. Errors: Error(comm); Error(device) where this build cannot join GPUs.
SetCommunicators make_communicators(const EmbeddingRank&, Device);

/// Collective. Runs body(), which makes no collective calls and may take long, and throws the error of any rank on all.
template <class Body>
void agree_without_limit(Communicator& host, const Body& body) {
  std::optional<Error> own;
  try {
    body();
  } catch (...) {
    own = current_error();
  }
  host.barrier();
  throw_on_all_ranks(host, own, kUsingEmbeddings);
}

}  // namespace hctr
