#include "device/lockstep.h"

#include <algorithm>

namespace hctr {

Context Lockstep::next() {
  if (!collect_) return ctx_;
  return ctx_.with_queue(&queues_.emplace_back());
}

void Lockstep::run() {
  run(true);
  queues_.clear();
  late_.clear();
}

void Lockstep::run(bool late) {
  const auto startable = [late](const LaunchQueue& queue) {
    return queue.launches_.empty() || (!late && queue.launches_.front().late) ? size_t{0} : queue.launches_.size();
  };
  const auto shorter = [&](const LaunchQueue& a, const LaunchQueue& b) { return startable(a) < startable(b); };
  for (;;) {
    // The longest queue goes first. So queues that differ at their beginning and have equal ends are merged there
    // again.
    const auto longest = std::max_element(queues_.begin(), queues_.end(), shorter);
    if (longest == queues_.end() || startable(*longest) == 0) break;
    const LaunchQueue::Launch& head = longest->launches_.front();
    if (!head.start_merged) {
      head.start_single(ctx_);
      longest->launches_.pop_front();
      continue;
    }
    const LaunchQueue::StartMerged start = head.start_merged;
    const auto can_merge = [&](const LaunchQueue& queue) {
      return !queue.launches_.empty() && queue.launches_.front().start_merged == start;
    };
    std::vector<const LaunchQueue::Launch*> launches;
    for (const LaunchQueue& queue : queues_)
      if (can_merge(queue)) launches.push_back(&queue.launches_.front());
    start(ctx_, launches);
    for (LaunchQueue& queue : queues_)
      if (can_merge(queue)) queue.launches_.pop_front();
  }
}

}  // namespace hctr
