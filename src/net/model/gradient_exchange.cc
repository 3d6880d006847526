#include "net/model/gradient_exchange.h"

#include <algorithm>

#include "core/device/profiler.h"
#include "ops/optimizer/peer_sum.h"

namespace hctr {
namespace {

/// Null unless there are exactly two ranks. Sums over more ranks depend on the order of summation, which the
/// communicator chooses.
std::unique_ptr<PeerExchange> between_two(const Weights& weights, Communicator& comm) {
  if (comm.size() != 2 || comm.several_hosts() || weights.gradient_ranges().empty()) return nullptr;
  return comm.make_peer_exchange({weights.all_gradients(), RankRanges::equal(2, 0)});
}

}  // namespace

std::vector<GradientExchange::Bucket> gradient_buckets(const std::vector<GradientRange>& ranges,
                                                       int64_t least_elements) {
  std::vector<GradientExchange::Bucket> buckets;
  bool open = false;                          // whether the last bucket accepts further ranges
  for (size_t i = ranges.size(); i-- > 0;) {  // the last layers finish their backward pass first
    const GradientRange& range = ranges[i];
    if (open && !(i + 1 < ranges.size() && ranges[i + 1].node == range.node) && buckets.back().count >= least_elements)
      open = false;
    if (!open) buckets.push_back({range.end, 0, range.node});
    open = true;
    GradientExchange::Bucket& bucket = buckets.back();
    bucket.count += bucket.begin - range.begin;
    bucket.begin = range.begin;
    bucket.node = std::min(bucket.node, range.node);
  }
  std::stable_sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) { return a.node > b.node; });
  return buckets;
}

GradientExchange::GradientExchange(const Weights& weights, Runtime& runtime, Communicator& comm,
                                   std::optional<int64_t> bucket_bytes)
    : weights_(weights),
      comm_(comm),
      peers_(between_two(weights, comm)),
      buckets_(gradient_buckets(
          weights.gradient_ranges(),
          bucket_bytes.value_or(peers_ ? kPeerBucketBytes : kBucketBytes) / static_cast<int64_t>(sizeof(float)))),
      ready_(runtime.device()),
      summed_(runtime.device()) {
  if (runtime.device().is_cuda() && comm.size() > 1) side_stream_.emplace(runtime.device(), StreamPriority::sums);
}

void GradientExchange::node_done(Context& ctx, size_t node, ops::OverflowSearch search) {
  for (const Bucket& bucket : buckets_)
    if (bucket.node == node) sum(ctx, bucket, search);
}

void GradientExchange::sum(Context& ctx, const Bucket& bucket, ops::OverflowSearch search) {
  const Tensor all = weights_.all_gradients();
  const Tensor part(all.bytes() + static_cast<size_t>(bucket.begin) * sizeof(float),
                    TensorSpec(DType::f32, {bucket.count}), all.device());
  Context own = side_context(ctx);
  {
    const ProfiledPart profiled(own, "all-reduce", "weights", "gradients");
    if (peers_) {
      auto* const theirs = reinterpret_cast<float*>(peers_->destination(1 - comm_.rank())) + bucket.begin;
      // after this call the gradients of both ranks are complete, and each rank may overwrite gradients of the other
      // rank with sums
      peers_->begin_write(own);
      ops::sum_half(own, part, theirs, comm_.rank() == 1, peers_->aborted(), search);
      peers_->end_write_and_wait(own);
    } else {
      comm_.all_reduce(own, part, Reduce::sum);
    }
  }
  summed(own);
}

Context GradientExchange::side_context(Context& ctx) {
  if (!side_stream_) return ctx;
  ready_.record(ctx.stream());
  ready_.make_wait(*side_stream_);
  return Context(ctx.runtime(), *side_stream_, ctx.state());
}

void GradientExchange::summed(Context& own) {
  if (!side_stream_) return;
  summed_.record(own.stream());
  in_progress_ = true;
}

void GradientExchange::join(Context& ctx) {
  if (in_progress_) summed_.make_wait(ctx.stream());
  in_progress_ = false;
}

}  // namespace hctr
