#include "device/lockstep.h"

#include <algorithm>

namespace hctr {

Context Lockstep::next() {
  if (!takes_) return ctx_;
  return ctx_.with_queue(&queues_.emplace_back());
}

void Lockstep::run() {
  const auto left = [](const LaunchQueue& a, const LaunchQueue& b) { return a.launches_.size() < b.launches_.size(); };
  for (;;) {
    // Whoever has most before it goes first: so those that end alike meet again after where they differ.
    const auto first = std::max_element(queues_.begin(), queues_.end(), left);
    if (first == queues_.end() || first->launches_.empty()) break;
    const LaunchQueue::Launch& head = first->launches_.front();
    if (!head.together) {
      head.alone(ctx_);
      first->launches_.pop_front();
      continue;
    }
    const LaunchQueue::Together kind = head.together;
    std::vector<const LaunchQueue::Launch*> alike;
    const auto is_alike = [&](const LaunchQueue& queue) {
      return !queue.launches_.empty() && queue.launches_.front().together == kind;
    };
    for (const LaunchQueue& queue : queues_)
      if (is_alike(queue)) alike.push_back(&queue.launches_.front());
    kind(ctx_, alike);
    for (LaunchQueue& queue : queues_)
      if (is_alike(queue)) queue.launches_.pop_front();
  }
  queues_.clear();
}

}  // namespace hctr
