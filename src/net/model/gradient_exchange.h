// All-reduces of dense gradients and of replicated rows' gradients, overlapping with the backward pass.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "core/comm/peer_exchange.h"
#include "core/device/recording.h"
#include "core/device/stream.h"
#include "net/model/weights.h"
#include "ops/common/loss_scale.h"

namespace hctr {

/// Divides the flat gradients into buckets at layer boundaries. Once the backward pass has run all layers of a bucket,
/// the bucket's all-reduce starts on a side stream. Each element's sum equals that of a single all-reduce of all
/// buckets. The side stream and the compute stream use one communicator. Before an all-reduce on the compute stream,
/// join() waits for the buckets in progress, so that calls of the communicator never overlap. On the CPU an all-reduce
/// is complete when the call returns. Two ranks with peer access each sum one half of each bucket for both ranks. These
/// sums need no free multiprocessors, so with peer access the buckets are smaller and their sums start earlier.
class GradientExchange {
 public:
  /// Elements [begin, begin + count) of all gradients. The elements are complete once `node` and all later nodes have
  /// run backward.
  struct Bucket {
    int64_t begin, count;
    size_t node;
  };
  static constexpr int64_t kBucketBytes = int64_t{4} << 20, kPeerBucketBytes = int64_t{1} << 20;

  /// A bucket is closed when it reaches `bucket_bytes`. The default is kBucketBytes, or kPeerBucketBytes between two
  /// ranks with peer access. The arguments must outlive the object.
  GradientExchange(const Weights&, Runtime&, Communicator&, std::optional<int64_t> bucket_bytes = {});

  /// Signals that the gradients of this node and of all later nodes in running order are queued. `search`: the overflow
  /// check of the summed gradients, if searches_sums().
  void node_done(Context&, size_t node, ops::OverflowSearch search);
  /// Whether sums are checked for overflow while they are computed. Each rank checks the part that it sums.
  bool searches_sums() const { return peers_ != nullptr; }
  /// Whether node_done() for this node starts an all-reduce.
  bool sums_at(size_t node) const {
    return std::ranges::any_of(buckets_, [node](const Bucket& bucket) { return bucket.node == node; });
  }
  /// Runs body(context), which starts another all-reduce, on the side stream; then records `done`. The side stream
  /// first waits for the work queued on `ctx`, and runs `body` after the buckets that are already queued.
  template <class Body>
  void sum_on_side_stream(Context& ctx, const Body& body, CrossingEvent& done) {
    Context own = side_context(ctx);
    body(own);
    done.record(own.stream());
    summed(own);
  }
  /// Makes the stream of the context wait for all started all-reduces.
  void join(Context&);
  /// The buckets in the order in which they are completed. The buckets of the last nodes come first.
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  void sum(Context&, const Bucket&, ops::OverflowSearch);
  /// A context on the side stream that waits for the work queued on `ctx`.
  Context side_context(Context& ctx);
  /// Records that an all-reduce has been queued on the side stream.
  void summed(Context& own);

  const Weights& weights_;
  Communicator& comm_;
  // exchanges all gradients; null unless there are two ranks with peer access
  std::unique_ptr<PeerExchange> peers_;
  std::vector<Bucket> buckets_;
  std::optional<Stream> side_stream_;  // none if all-reduces are synchronous
  Event ready_, summed_;
  bool in_progress_ = false;  // whether the side stream has queued work since the last join
};

/// `ranges`: contiguous and ordered; ranges of one node are adjacent. A bucket ends at the first node boundary after
/// `least_elements`.
std::vector<GradientExchange::Bucket> gradient_buckets(const std::vector<GradientRange>& ranges,
                                                       int64_t least_elements);

}  // namespace hctr
