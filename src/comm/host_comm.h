// The communicator of CPU ranks, threads of one process or spread over many.
#pragma once

#include "comm/communicator.h"
#include "comm/rank_group.h"

namespace hctr {

/// Sums are added in the order of ranks, so they do not depend on which ranks share a process.
class HostComm : public Communicator {
 public:
  /// `group` outlives it; `rank` is one of the group's.
  HostComm(RankGroup& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_.seats().all; }
  void all_reduce(Context&, Tensor inout, Reduce) override;
  void reduce_scatter(Context&, Tensor in, Tensor out, Reduce) override;
  void all_gather(Context&, Tensor in, Tensor out) override;
  void all_to_all(Context&, Tensor in, const Parts& send, Tensor out, const Parts& receive) override;
  void broadcast(Context&, Tensor inout, int root) override;
  bool any(bool mine) override;
  std::vector<std::string> gather(std::string_view mine, int root) override;
  std::string share(std::string_view text, int root) override;
  void barrier() override;
  std::unique_ptr<Route> make_route(const RouteSpec&) override;
  void abort(const Error& error) noexcept override { group_.fail(rank_, error); }

 private:
  Transfer empty() const;
  /// out = the reduced part [begin, begin + count) of all ranks' `in`; parts follow each other.
  void reduce_part(Tensor in, int64_t each, std::byte* out, Reduce, const char* name);

  RankGroup& group_;
  int rank_;
  std::vector<std::byte> arrived_;
};

}  // namespace hctr
