#include "core/comm/self_comm.h"

#include "core/comm/arguments.h"
#include "core/comm/peer_exchange.h"
#include "core/device/copy_bytes.h"

namespace hctr {
namespace {

void move(Context& ctx, const char* call, const Tensor& in, const Tensor& out) {
  expect_alike(call, {in, out});
  HCTR_EXPECT(in.dense() && out.dense() && in.elements() == out.elements(), call, ": ", to_string(in.shape()), " to ",
              to_string(out.shape()), " on one rank");
  if (in.bytes() != out.bytes()) copy_bytes(ctx.stream(), out.bytes(), in.bytes(), in.spec().bytes());
}

}  // namespace

void SelfComm::reduce_scatter(Context& ctx, Tensor in, Tensor out, Reduce) { move(ctx, "reduce_scatter", in, out); }
void SelfComm::all_gather(Context& ctx, Tensor in, Tensor out) { move(ctx, "all_gather", in, out); }
void SelfComm::all_to_all(Context& ctx, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) {
  expect_ranges(in, send, out, receive, 1);
  copy_bytes(ctx.stream(), element(out, receive.begin[0]), element(in, send.begin[0]),
             static_cast<size_t>(send.count[0]) * size_of(in.dtype()));
}
void SelfComm::broadcast(Context&, Tensor, int root) { HCTR_EXPECT(root == 0, "broadcast from rank ", root, " of 1"); }

std::unique_ptr<PeerExchange> SelfComm::make_peer_exchange(const PeerExchangeSpec& spec) {
  return make_all_to_all_exchange(*this, spec);
}

}  // namespace hctr
