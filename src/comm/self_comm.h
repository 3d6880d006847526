// The communicator of a rank that is alone, so that callers never ask whether there are others.
#pragma once

#include "comm/communicator.h"

namespace hctr {

/// Every collective is the copy it amounts to on one rank.
class SelfComm : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(Context&, Tensor, Reduce) override {}
  void reduce_scatter(Context&, Tensor in, Tensor out, Reduce) override;
  void all_gather(Context&, Tensor in, Tensor out) override;
  void all_to_all(Context&, Tensor in, const Parts& send, Tensor out, const Parts& receive) override;
  void broadcast(Context&, Tensor inout, int root) override;
  bool any(bool mine) override { return mine; }
  std::vector<std::string> gather(std::string_view mine, int) override { return {std::string(mine)}; }
  std::string share(std::string_view text, int) override { return std::string(text); }
  void barrier() override {}
  std::unique_ptr<Route> make_route(const RouteSpec&) override;
  void abort(const Error&) noexcept override {}
};

}  // namespace hctr
