// All-reduces of dense gradients, and of those of replicated rows, that overlap with the backward pass.
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

/// The flat gradients are divided into buckets at borders of layers. Once the backward pass has run all layers of a
/// bucket, its all-reduce starts on a side stream; each element is summed as in one call for all. Both streams use one
/// communicator: all-reduces of the compute stream first wait for the buckets in progress (join), so no two calls of
/// the communicator overlap. On the CPU an all-reduce is complete when the call returns. Two ranks that reach each
/// other's memory add up one half of each bucket each, for both, in buckets that are smaller: these wait for nobody's
/// blocks.
class GradientExchange {
 public:
  /// Elements [begin, begin + count) of all gradients, complete once `node` and those after it have run backward.
  struct Bucket {
    int64_t begin, count;
    size_t node;
  };
  static constexpr int64_t kBucketBytes = int64_t{4} << 20, kPeerBucketBytes = int64_t{1} << 20;

  /// A bucket is closed when it has `bucket_bytes`; left out: kBucketBytes, or between two peers kPeerBucketBytes. The
  /// arguments outlive the object.
  GradientExchange(const Weights&, Runtime&, Communicator&, std::optional<int64_t> bucket_bytes = {});

  /// Signals that the gradients of this node, and of all after it in running order, are queued. `search`: for overflow
  /// in their sums, where searches_sums().
  void node_done(Context&, size_t node, ops::OverflowSearch search);
  /// Whether sums are searched as they are made; on each rank a part of them.
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
  /// In the order in which they complete: those of the last nodes first.
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  void sum(Context&, const Bucket&, ops::OverflowSearch);
  /// A context of the side stream, which waits for the work queued on `ctx`.
  Context side_context(Context& ctx);
  /// Records that an all-reduce has been queued there.
  void summed(Context& own);

  const Weights& weights_;
  Communicator& comm_;
  std::unique_ptr<PeerExchange> peers_;  // of all gradients; null unless two ranks reach each other's memory
  std::vector<Bucket> buckets_;
  std::optional<Stream> side_stream_;  // none where all-reduces are synchronous
  Event ready_, summed_;
  bool in_progress_ = false;  // on the side stream, since the last join
};

/// `ranges` are contiguous and ordered, those of one node next to each other. A bucket ends at the first border between
/// nodes after `least_elements`.
std::vector<GradientExchange::Bucket> gradient_buckets(const std::vector<GradientRange>& ranges,
                                                       int64_t least_elements);

}  // namespace hctr
