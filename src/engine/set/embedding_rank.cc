#include <utility>

#include "core/base/expect.h"
#include "core/comm/host_comm.h"
#include "core/comm/nccl_comm.h"
#include "core/comm/tcp_processes.h"
#include "engine/set/rank_state.h"

namespace hctr {
namespace {

constexpr const char* kCallSetting = "RankWaits::call_seconds";
constexpr size_t kShortestSecret = 16;
constexpr int kMostThreadRanks = 1024;

[[noreturn]] void refuse_ranks(const std::string& what) { throw Error(Kind::usage, what); }

void check_waits(const RankWaits& waits) {
  if (waits.call_seconds < 0 || waits.join_seconds < 1 || waits.silence_seconds < 1)
    refuse_ranks(cat("expected timeouts of at least 0 s for a call, 1 s for joining and 1 s for a heartbeat, found ",
                     waits.call_seconds, " s, ", waits.join_seconds, " s and ", waits.silence_seconds, " s"));
}

std::unique_ptr<Processes> join_by_address(const JoinOptions& options, const JoinLimits& limits) {
  if (options.processes < 1 || options.process < 0 || options.process >= options.processes)
    refuse_ranks(cat("process ", options.process, " of ", options.processes,
                     ": expected a number from 0 to one "
                     "less than the number of processes"));
  if (options.port < 1 || options.port > 65535)
    refuse_ranks(cat("port ", options.port, " of process 0: expected 1 to 65535"));
  if (!options.secret.empty() && options.secret.size() < kShortestSecret)
    refuse_ranks(cat("the secret of the processes has ", options.secret.size(), " characters; expected at least ",
                     kShortestSecret));
  if (options.processes == 1) return nullptr;
  return start_tcp({.launcher = "JoinOptions",
                    .process = options.process,
                    .processes = options.processes,
                    .address = options.address,
                    .port = options.port,
                    .secret = options.secret},
                   limits, options.surroundings);
}

}  // namespace

EmbeddingRank::State::Group::Group(int count, std::unique_ptr<Processes> joined, const RankWaits& waits,
                                   const Environment& environment)
    : others(std::move(joined)), ranks(count, others.get(), std::chrono::seconds(waits.call_seconds), environment) {
  ranks.set_limit_setting(kCallSetting);
}

EmbeddingRank::State::~State() {
  if (group->ranks.local_ranks().total > 1)
    group->ranks.fail(rank, Error(Kind::comm, "the rank and its embedding sets were destroyed"));
}

std::vector<EmbeddingRank> EmbeddingRank::of_threads(int ranks, const RankWaits& waits) {
  if (ranks < 1 || ranks > kMostThreadRanks)
    refuse_ranks(cat(ranks, " ranks of a process: expected 1 to ", kMostThreadRanks));
  check_waits(waits);
  return of_processes({.ranks = ranks, .waits = waits});
}

std::vector<EmbeddingRank> EmbeddingRank::of_processes(const JoinOptions& options) {
  if (options.ranks < 1 || options.ranks > kMostThreadRanks)
    refuse_ranks(cat(options.ranks, " ranks of a process: expected 1 to ", kMostThreadRanks));
  check_waits(options.waits);
  if (options.address.empty() && options.processes > 1)
    refuse_ranks(cat(options.processes, " processes need the address of process 0"));
  const JoinLimits limits{.step = std::chrono::seconds(options.waits.call_seconds),
                          .join = std::chrono::seconds(options.waits.join_seconds),
                          .silence = std::chrono::seconds(options.waits.silence_seconds),
                          .step_setting = kCallSetting};
  std::unique_ptr<Processes> others =
      options.address.empty() ? started_processes(limits, options.surroundings) : join_by_address(options, limits);
  const auto group =
      std::make_shared<State::Group>(options.ranks, std::move(others), options.waits, options.surroundings.environment);
  std::vector<EmbeddingRank> all(static_cast<size_t>(options.ranks));
  for (int r = 0; r < options.ranks; ++r)
    all[static_cast<size_t>(r)].state_ = std::make_shared<State>(group, group->ranks.local_ranks().first + r);
  return all;
}

int EmbeddingRank::rank() const { return state_ ? state_->rank : 0; }
int EmbeddingRank::size() const { return state_ ? state_->group->ranks.local_ranks().total : 1; }

SetCommunicators make_communicators(const EmbeddingRank& of, Device device) {
  if (of.size() == 1) return {};
  RankGroup& group = of.state()->group->ranks;
  auto host = std::make_unique<HostComm>(group, of.rank());
  if (!device.is_cuda()) return {std::make_unique<HostComm>(group, of.rank()), std::move(host)};
  if constexpr (kNcclBuild) return {make_nccl_comm(group, of.rank(), device), std::move(host)};
  throw Error(Kind::device, "an embedding set on several GPUs needs NCCL, which this build does not contain");
}

}  // namespace hctr
