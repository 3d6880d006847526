// All-reduces of dense gradients and of replicated rows' gradients, which overlap with the backward pass.
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
/// its all-reduce starts on a side stream; each element is summed as if one call reduced all buckets. Both streams use
/// one communicator: all-reduces on the compute stream first wait for the buckets in progress (join), so no two calls
/// of the communicator overlap. On the CPU an all-reduce is complete when the call returns. If two ranks can access
/// each other's memory, each sums one half of each bucket for both. Their buckets are smaller, because these sums do
/// not wait for free multiprocessors.
class GradientExchange {
 public:
  /// Elements [begin, begin + count) of all gradients, complete once `node` and the later nodes have run backward.
  struct Bucket {
    int64_t begin, count;
    size_t node;
  };
  static constexpr int64_t kBucketBytes = int64_t{4} << 20, kPeerBucketBytes = int64_t{1} << 20;

  /// A bucket is closed when it reaches `bucket_bytes`; default: kBucketBytes, or kPeerBucketBytes between two peers.
  /// The arguments outlive the object.
  GradientExchange(const Weights&, Runtime&, Communicator&, std::optional<int64_t> bucket_bytes = {});

  /// Signals that the gradients of this node, and of all later nodes in running order, are queued. `search`: the
  /// overflow check of their sums, if searches_sums().
  void node_done(Context&, size_t node, ops::OverflowSearch search);
  /// Whether sums are checked for overflow as they are computed; each rank checks a part of them.
  bool searches_sums() const { return peers_ != nullptr; }
  /// Whether node_done() of this node starts an all-reduce.
  bool sums_at(size_t node) const {
    return std::ranges::any_of(buckets_, [node](const Bucket& bucket) { return bucket.node == node; });
  }
  /// Runs body(context), which starts another all-reduce, on the side stream in order with the buckets, after the work
  /// queued on `ctx`. Records `done` after it.
  template <class Body>
  void sum_on_side_stream(Context& ctx, const Body& body, CrossingEvent& done) {
    Context own = side_context(ctx);
    body(own);
    done.record(own.stream());
    summed(own);
  }
  /// Makes the stream of the context wait for all all-reduces started so far.
  void join(Context&);
  /// In the order of completion: the buckets of the last nodes first.
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  void sum(Context&, const Bucket&, ops::OverflowSearch);
  /// A context on the side stream, after the work queued on `ctx`.
  Context side_context(Context& ctx);
  /// Records that an all-reduce has been queued on the side stream.
  void summed(Context& own);

  const Weights& weights_;
  Communicator& comm_;
  // exchanges all gradients; null unless two ranks can access each other's memory
  std::unique_ptr<PeerExchange> peers_;
  std::vector<Bucket> buckets_;
  std::optional<Stream> side_stream_;  // none where all-reduces are synchronous
  Event ready_, summed_;
  bool in_progress_ = false;  // whether the side stream has queued work since the last join
};

/// `ranges` are contiguous and ordered, with the ranges of one node adjacent. A bucket ends at the first node boundary
/// after `least_elements`.
std::vector<GradientExchange::Bucket> gradient_buckets(const std::vector<GradientRange>& ranges,
                                                       int64_t least_elements);

}  // namespace hctr
