// Dense gradients, and in turn with them those of rows that every rank has, summed over ranks while the backward pass
// is still on its way to the first layers.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "device/stream.h"
#include "model/weights.h"

namespace hctr {

/// The flat gradients are cut into buckets at borders of layers. When the backward pass has run all layers of a bucket,
/// its sum over the ranks starts on a stream beside; each element is summed as in one call for all. The stream uses the
/// communicator of the compute stream: what that one sums itself waits for the buckets under way (join), so no two
/// calls of the communicator run at once. On the CPU the sum is made where the call stands.
class GradientExchange {
 public:
  /// Elements [begin, begin + count) of all gradients, complete once `node` and those behind it have run backward.
  struct Bucket {
    int64_t begin, count;
    size_t node;
  };
  static constexpr int64_t kBucketBytes = int64_t{4} << 20;

  /// A bucket is closed when it has `bucket_bytes`. The arguments outlive the object.
  GradientExchange(const Weights&, Runtime&, Communicator&, int64_t bucket_bytes = kBucketBytes);

  /// The gradients of this node, and of all behind it in running order, are there.
  void node_done(Context&, size_t node);
  /// In turn with the buckets, and beside what `ctx` is given next: another sum, that body(context) starts. `done` is
  /// recorded behind it.
  template <class Body>
  void sum_on_side_stream(Context& ctx, const Body& body, Event& done) {
    Context own = beside(ctx);
    body(own);
    done.record(own.stream());
    summed(own);
  }
  /// Work given to the context's stream from now on starts after the sums that have been started.
  void join(Context&);
  /// By the nodes that complete them: the last one first.
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  void sum(Context&, const Bucket&);
  /// Where to start a sum of what has been given to `ctx` so far.
  Context beside(Context& ctx);
  /// It has been started there.
  void summed(Context& own);

  const Weights& weights_;
  Communicator& comm_;
  std::vector<Bucket> buckets_;
  std::optional<Stream> side_stream_;  // none where sums are made in place
  Event ready_, summed_;
  bool under_way_ = false;  // on the stream beside, since the last join
};

/// Ranges follow each other, those of one node side by side. A bucket is closed at the first border between nodes
/// behind `least_elements`.
std::vector<GradientExchange::Bucket> gradient_buckets(const std::vector<GradientRange>& ranges,
                                                       int64_t least_elements);

}  // namespace hctr
