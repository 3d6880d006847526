// The state of one rank in a group of ranks that share the tables of embedding sets.
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
  /// Marks the rank as failed, so other ranks stop waiting for it.
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

/// Names the failed action in messages, on all ranks.
inline constexpr const char* kUsingEmbeddings = "using embeddings";

/// The communicators of a set on this rank; null for a single rank. `host` exchanges host values. A GPU communicator
/// would time out if the caller waits long between two calls.
struct SetCommunicators {
  std::unique_ptr<Communicator> device, host;
};
/// Collective on GPUs. Errors: Error(comm); Error(device) if this build has no NCCL for several GPUs.
SetCommunicators make_communicators(const EmbeddingRank&, Device);

/// Collective. Runs body() without a time limit. body() must not make collective calls. If body() fails on any rank,
/// every rank throws.
template <class Body>
void agree_without_limit(Communicator& host, const Body& body) {
  const std::optional<Error> own = error_of(body);
  host.barrier();
  throw_on_all_ranks(host, own, kUsingEmbeddings);
}

}  // namespace hctr
