// Communication between the ranks of a job: collectives on tensors and on host values.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr {

enum class Reduce { sum, max };

/// The elements of a dense tensor that are sent to each rank, or received from each rank: a range [begin, begin +
/// count) for each rank. The ranges are fixed when a step is planned. Ranges to send may overlap, for example if one
/// range is sent to every rank.
struct RankRanges {
  std::vector<int64_t> begin, count;

  void add(int64_t first, int64_t elements) {
    begin.push_back(first);
    count.push_back(elements);
  }
  /// Contiguous ranges of equal size.
  static RankRanges equal(int ranks, int64_t elements_of_each) {
    RankRanges ranges;
    for (int r = 0; r < ranks; ++r) ranges.add(r * elements_of_each, elements_of_each);
    return ranges;
  }
};

/// The arguments of one all-to-all; see Communicator::all_to_all().
struct AllToAll {
  Tensor in;
  RankRanges send;
  Tensor out;
  RankRanges receive;
};

class PeerExchange;
struct PeerExchangeSpec;

/// The communicator of one rank. Calls are collective: every rank makes the same calls in the same order. If a call
/// fails on one rank, every rank throws Error(comm).
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The index of a rank's host. Hosts are numbered in the order of their first ranks.
  virtual int host_of(int /*rank*/) const { return 0; }
  bool several_hosts() const {
    for (int r = 1; r < size(); ++r)
      if (host_of(r) != host_of(0)) return true;
    return false;
  }

  // Collectives on tensors. Tensors are dense, have one dtype, and lie on the context's device. The work is queued on
  // the context's stream. All sizes are fixed, so a step can be recorded. All ranks get bitwise equal sums.

  /// inout = the sum or maximum of `inout` over all ranks.
  virtual void all_reduce(Context&, Tensor inout, Reduce) = 0;
  /// Reduces `in` over all ranks and splits the result into size() equal ranges; out = the range of this rank.
  virtual void reduce_scatter(Context&, Tensor in, Tensor out, Reduce) = 0;
  /// out = the `in` tensors of all ranks, concatenated in rank order.
  virtual void all_gather(Context&, Tensor in, Tensor out) = 0;
  /// Sends to each rank r the range `send`[r] of `in`. The data from rank r arrive in the range `receive`[r] of `out`.
  /// The range that one rank sends and the range that the other receives have equally many elements, possibly 0. `in`
  /// and `out` must not overlap.
  virtual void all_to_all(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) = 0;
  /// inout = the `inout` tensor of `root`.
  virtual void broadcast(Context&, Tensor inout, int root) = 0;

  // Collectives on host values.

  /// Whether `mine` is true on any rank. Called in every step. A rank that does not call any() within the time limit is
  /// an error.
  virtual bool any(bool mine) = 0;

  // Collectives on host values between steps. These calls wait for other ranks without a time limit.

  /// Returns the texts of all ranks in rank order on `root`, and an empty list on other ranks.
  virtual std::vector<std::string> gather(std::string_view mine, int root) = 0;
  /// Returns the text of `root`.
  virtual std::string broadcast(std::string_view text, int root) = 0;
  virtual void barrier() = 0;
  /// Prepares an all-to-all that is repeated in every step (core/comm/peer_exchange.h). Ranks write directly to each
  /// other's memory if possible. If direct writes are impossible and the spec has no send buffer, returns null on every
  /// rank. The communicator and the buffers must outlive the exchange.
  virtual std::unique_ptr<PeerExchange> make_peer_exchange(const PeerExchangeSpec&) = 0;

  /// Wakes all peers. Each peer then throws this error from its current or next call.
  virtual void abort(const Error&) noexcept = 0;

  /// Runs several all-to-alls, which do not read each other's results. NCCL runs them as one.
  virtual void all_to_alls(Context& ctx, std::span<const AllToAll> all) {
    for (const AllToAll& one : all) all_to_all(ctx, one.in, one.send, one.out, one.receive);
  }
};

}  // namespace hctr
