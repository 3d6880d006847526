// Admits keys to a DeviceCache after look-ups have missed the keys often enough.
#include <algorithm>
#include <chrono>

#include "core/base/expect.h"
#include "core/device/current_device.h"
#include "store/device_cache.h"
#include "store/device_cache_parts.h"
#include "store/unique_keys.h"

namespace hctr {
namespace {

using Clock = std::chrono::steady_clock;

// The maximum number of keys that wait to be counted, as a multiple of Options::rows_of_change. A longer queue has
// older misses, of keys that the cache may already contain, and would admit such keys again.
constexpr int64_t kMostWaiting = 4;
// The maximum number of keys that are counted between two changes, as a multiple of Options::rows_of_change. More keys
// would delay the admission of keys that are due.
constexpr int64_t kMostCounted = 2;

}  // namespace

/// Passes the grouped misses to the admission thread, which counts them. Passes only a sample if there are more misses
/// than the thread can soon count. Skips misses of whole pools: a key that such a pool lacks has no row, and would only
/// use up the pool's spare rows.
void DeviceCache::consider(const Session& session) {
  const int64_t room = kMostWaiting * options_.rows_of_change - missed_count_;
  if (room <= 0) return;
  const size_t step = session.grouped.size() / static_cast<size_t>(room) + 1;
  std::vector<Missed> all;
  int64_t count = 0;
  for (size_t p = 0; p < session.parts.size(); ++p) {
    const size_t begin = session.first_of_part[p], end = session.first_of_part[p + 1];
    if (begin == end || whole(session.parts[p].pool)) continue;
    Missed& missed = all.emplace_back(Missed{session.parts[p].pool, session.parts[p].space, {}});
    missed.keys.reserve((end - begin) / step + 1);
    for (size_t i = begin; i < end; i += step) missed.keys.push_back(session.grouped[i].key);
    count += std::ssize(missed.keys);
  }
  if (all.empty()) return;
  const std::lock_guard lock(pending_lock_);
  std::ranges::move(all, std::back_inserter(missed_));
  missed_count_ += count;
  if (!working_ || has_batch()) pending_changed_.notify_all();
}

/// Whether to admit the due keys now, without waiting for more keys.
bool DeviceCache::is_due() const {
  return settling_ > 0 || std::ranges::any_of(pending_, [&](const DueKeys& pending) {
           return std::ssize(pending.keys) >= (options_.rows_of_change + 1) / 2;
         });
}

/// Whether to count the missed keys now, without waiting for more keys.
bool DeviceCache::has_batch() const { return missed_count_ >= options_.rows_of_change || is_due(); }

/// Counts missed keys, each key once for a look-up, and schedules keys for admission.
void DeviceCache::count_missed(std::unique_lock<std::mutex>& of_pending) {
  std::vector<Missed> all;
  for (int64_t count = 0; !missed_.empty() && count < kMostCounted * options_.rows_of_change;) {
    count += std::ssize(missed_.front().keys);
    missed_count_ -= std::ssize(missed_.front().keys);
    all.push_back(std::move(missed_.front()));
    missed_.pop_front();
  }
  of_pending.unlock();
  std::vector<DueKeys> due(all.size());
  {
    UniqueKeys unique;
    const std::lock_guard lock(admission_lock_);
    for (size_t i = 0; i < all.size(); ++i) {
      unique.set(all[i].keys);
      for (const int64_t key : unique.keys)
        if (admission_.count(all[i].space, key) >= options_.admit_after) due[i].keys.push_back(key);
    }
  }
  of_pending.lock();
  for (size_t i = 0; i < all.size(); ++i) {
    DueKeys& pending = pending_[static_cast<size_t>(all[i].pool)];
    // skipped keys are counted again at their next miss
    const size_t room = static_cast<size_t>(options_.rows_of_change) -
                        std::min(static_cast<size_t>(options_.rows_of_change), pending.keys.size());
    const size_t count = std::min(room, due[i].keys.size());
    pending.keys.insert(pending.keys.end(), due[i].keys.begin(), due[i].keys.begin() + static_cast<ptrdiff_t>(count));
    pending.spaces.resize(pending.keys.size(), all[i].space);
  }
}

void DeviceCache::work() {
  std::unique_lock lock(pending_lock_);
  const auto next = [&] {
    return std::ranges::find_if(pending_, [](const DueKeys& due) { return !due.keys.empty(); });
  };
  // A change delays concurrent look-ups: calls to the GPU by look-ups wait for the calls of this thread. With few
  // misses, changes are so rare that they delay less than one look-up in a hundred.
  constexpr std::chrono::milliseconds kBetweenChanges{50};
  auto change_at = Clock::now();
  while (!ends_) {
    if (missed_.empty() && next() == pending_.end()) {
      working_ = false;
      pending_changed_.notify_all();
      pending_changed_.wait(lock);
      continue;
    }
    working_ = true;
    pending_changed_.wait_until(lock, change_at, [&] { return ends_ || has_batch(); });
    if (ends_) return;
    std::exception_ptr failure;
    try {
      count_missed(lock);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!lock) lock.lock();
    const bool changes = !failure && (is_due() || Clock::now() >= change_at);
    for (auto pool = next(); changes && !failure && pool != pending_.end(); pool = next()) {
      const auto number = static_cast<int32_t>(pool - pending_.begin());
      const DueKeys due = std::exchange(*pool, {});
      lock.unlock();
      try {
        bring_in(number, due);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
    }
    if (changes) change_at = Clock::now() + kBetweenChanges;
    if (failure) failure_ = failure;
  }
}

void DeviceCache::rethrow_failure() {
  std::exception_ptr failure;
  {
    const std::lock_guard lock(pending_lock_);
    std::swap(failure, failure_);
  }
  if (failure) std::rethrow_exception(failure);
}

/// Reads the rows again, because the look-up's rows may precede an update. If the source and the cache contain
/// different updates, does not admit the keys now.
void DeviceCache::bring_in(int32_t number, const DueKeys& due) {
  const auto dim = static_cast<size_t>(space(due.spaces.front()).dim);
  std::vector<std::pair<int32_t, int64_t>> unique;
  for (size_t i = 0; i < due.keys.size(); ++i) unique.emplace_back(due.spaces[i], due.keys[i]);
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  std::vector<int32_t> spaces;
  std::vector<int64_t> keys;
  for (const auto& [space, key] : unique) spaces.push_back(space), keys.push_back(key);
  std::vector<float> rows(unique.size() * dim);
  std::vector<uint8_t> found(unique.size());
  const uint64_t updates = updates_of_source();
  for (size_t first = 0, end = 0; first < unique.size(); first = end) {
    while (end < unique.size() && spaces[end] == spaces[first]) ++end;
    source_.rows(spaces[first], std::span(keys).subspan(first, end - first), rows.data() + first * dim,
                 found.data() + first);
  }
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  if (updates_of_source() != updates || applied_ != updates) return;
  for (uint8_t& one : found) one = one == 0;
  write(static_cast<size_t>(number),
        {.keys = keys, .spaces = spaces.data(), .rows = rows.data(), .absent = found.data(), .in_background = true});
  end_era();
  admitted_ += static_cast<int64_t>(unique.size());
}

void DeviceCache::settle() {
  std::unique_lock lock(pending_lock_);
  ++settling_;
  pending_changed_.notify_all();
  pending_changed_.wait(lock, [&] {
    return !working_ && missed_.empty() &&
           std::ranges::all_of(pending_, [](const DueKeys& due) { return due.keys.empty(); });
  });
  --settling_;
}

}  // namespace hctr
