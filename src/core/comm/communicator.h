// Communication between the ranks of a job: collectives on tensors and on host values.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr {

enum class Reduce { sum, max };

/// For each rank a range [begin, begin + count) of the elements of a dense tensor, to send to it or to receive from it.
/// Fixed when a step is planned. Ranges to send may overlap: one range may go to every rank.
struct RankRanges {
  std::vector<int64_t> begin, count;

  void add(int64_t first, int64_t elements) {
    begin.push_back(first);
    count.push_back(elements);
  }
  /// Contiguous ranges of one size.
  static RankRanges equal(int ranks, int64_t elements_of_each) {
    RankRanges ranges;
    for (int r = 0; r < ranks; ++r) ranges.add(r * elements_of_each, elements_of_each);
    return ranges;
  }
};

class PeerExchange;
struct PeerExchangeSpec;

/// One per rank. Calls are collective: every rank makes the same calls in the same order. Errors: Error(comm), on every
/// rank when one fails.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The index of a rank's host: hosts are numbered by their first ranks.
  virtual int host_of(int /*rank*/) const { return 0; }
  bool several_hosts() const {
    for (int r = 1; r < size(); ++r)
      if (host_of(r) != host_of(0)) return true;
    return false;
  }

  // Collectives on tensors, which are dense, of one dtype and on the context's device. The work is queued on the
  // context's stream, and all sizes are fixed, so that a step can be recorded. All ranks get bitwise equal sums.

  /// inout = the sum (or maximum) of inout over all ranks.
  virtual void all_reduce(Context&, Tensor inout, Reduce) = 0;
  /// out = this rank's range, of size() equal ones, of the reduced `in`.
  virtual void reduce_scatter(Context&, Tensor in, Tensor out, Reduce) = 0;
  /// out = `in` of all ranks, in the order of ranks.
  virtual void all_gather(Context&, Tensor in, Tensor out) = 0;
  /// Sends range r of `in` to rank r, which receives it in range rank() of its `out`. Both have the same number of
  /// elements, possibly 0. `in` and `out` do not overlap.
  virtual void all_to_all(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) = 0;
  /// inout = inout of `root`.
  virtual void broadcast(Context&, Tensor inout, int root) = 0;

  // Collectives on host values.

  /// Whether the value is true on any rank. Called in every step: a rank that does not call it in time is an error.
  virtual bool any(bool mine) = 0;

  // Collectives on host values between steps. They wait for other ranks without a time limit.

  /// Returns the texts of all ranks, in the order of ranks, on `root`, and nothing on the others.
  virtual std::vector<std::string> gather(std::string_view mine, int root) = 0;
  /// Returns the text of `root`.
  virtual std::string broadcast(std::string_view text, int root) = 0;
  virtual void barrier() = 0;
  /// Prepares an all_to_all that is repeated in every step (core/comm/peer_exchange.h). Ranks write directly to each
  /// other's memory if possible. If not, and the spec has no send buffer, the result is null on every rank. The
  /// communicator and the buffers must outlive it.
  virtual std::unique_ptr<PeerExchange> make_peer_exchange(const PeerExchangeSpec&) = 0;

  /// Wakes the peers: each throws this error from its current or next call.
  virtual void abort(const Error&) noexcept = 0;
};

}  // namespace hctr
