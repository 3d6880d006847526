// The communicator of CPU ranks, which are threads of one process or of several.
#pragma once

#include "core/comm/communicator.h"
#include "core/comm/rank_group.h"

namespace hctr {

/// Sums are added in rank order, so results do not depend on which ranks share a process.
class HostComm : public Communicator {
 public:
  /// `group` must outlive the communicator. `rank` is one of the group's local ranks.
  HostComm(RankGroup& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_.local_ranks().total; }
  int host_of(int rank) const override { return group_.host_of(rank); }
  void all_reduce(Context&, Tensor inout, Reduce) override;
  void reduce_scatter(Context&, Tensor in, Tensor out, Reduce) override;
  void all_gather(Context&, Tensor in, Tensor out) override;
  void all_to_all(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) override;
  void broadcast(Context&, Tensor inout, int root) override;
  bool any(bool mine) override;
  std::vector<std::string> gather(std::string_view mine, int root) override;
  std::string broadcast(std::string_view text, int root) override;
  void barrier() override;
  std::unique_ptr<PeerExchange> make_peer_exchange(const PeerExchangeSpec&) override;
  void abort(const Error& error) noexcept override { group_.fail(rank_, error); }

 private:
  Transfer empty() const;
  /// Reduces `in` over all ranks and stores this rank's range in `out`. The ranges of the ranks are adjacent. Each has
  /// `each` elements; the last ranges may be shorter.
  void reduce_range(Tensor in, int64_t each, std::byte* out, Reduce, const char* name);

  RankGroup& group_;
  int rank_;
  std::vector<std::byte> arrived_;
};

}  // namespace hctr
