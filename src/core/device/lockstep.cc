#include "core/device/lockstep.h"

#include <algorithm>
#include <cstring>

namespace hctr {

std::span<const std::byte> LaunchQueue::keep(std::span<const std::byte> arguments) {
  constexpr size_t kAlignment = alignof(std::max_align_t);
  const size_t bytes = (arguments.size() + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > free_.size()) {
    const size_t block = std::max(bytes, kBlockBytes);
    free_ = {blocks_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(block)).get(), block};
  }
  const std::span<std::byte> kept = free_.first(arguments.size());
  free_ = free_.subspan(bytes);
  std::memcpy(kept.data(), arguments.data(), arguments.size());
  return kept;
}

Context Lockstep::next(bool several) {
  if (!collect_) return ctx_;
  return ctx_.with_queue(&queues_.emplace_back(several));
}

Context Lockstep::next_late(LateResult result) {
  if (!collect_) return ctx_;
  late_.push_back(std::move(result));
  return ctx_.with_queue(&late_queues_.emplace_back());
}

void Lockstep::run() {
  run_first(ctx_);
  run_late(ctx_);
}

void Lockstep::run_first(Context& ctx) { run(ctx, queues_); }

void Lockstep::run_late(Context& ctx) {
  run(ctx, late_queues_);
  late_.clear();
}

void Lockstep::run(Context& ctx, std::deque<LaunchQueue>& queues) {
  const auto shorter = [](const LaunchQueue& a, const LaunchQueue& b) { return a.left() < b.left(); };
  std::vector<const LaunchQueue::Launch*> launches;
  for (;;) {
    // Take the next launch from the queue with the most launches left. Queues that begin differently but end alike then
    // reach their common launches at the same time, so these are merged.
    const auto longest = std::max_element(queues.begin(), queues.end(), shorter);
    if (longest == queues.end() || longest->empty()) break;
    const LaunchQueue::Launch& head = longest->next();
    if (!head.start_merged) {
      head.start_single(ctx);
      longest->pop();
      continue;
    }
    const LaunchQueue::StartMerged start = head.start_merged;
    const auto can_merge = [&](const LaunchQueue& queue) {
      return !queue.empty() && queue.next().start_merged == start;
    };
    launches.clear();
    for (const LaunchQueue& queue : queues)
      if (can_merge(queue)) launches.push_back(&queue.next());
    start(ctx, launches);
    for (LaunchQueue& queue : queues)
      if (can_merge(queue)) queue.pop();
  }
  queues.clear();
}

}  // namespace hctr
