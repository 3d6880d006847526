// Adds, changes and removes rows of a DeviceCache, one change at a time.
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
#include "ops/cache/row_cache_rules.h"
#include "store/device_cache.h"
#include "store/device_cache_parts.h"

namespace hctr {
namespace {

ops::CacheState* state_of(const Buffer& buffer) { return reinterpret_cast<ops::CacheState*>(buffer.data()); }

template <class T>
T* grown(Buffer& buffer, Device device, int64_t count) {
  const auto bytes = static_cast<size_t>(count) * sizeof(T);
  if (buffer.bytes() < bytes) buffer = Buffer(device, bytes);
  return reinterpret_cast<T*>(buffer.data());
}

}  // namespace

void DeviceCache::Pool::reserve(int64_t keys_of_change, int64_t rows_of_change) {
  const Device on = memory.device();
  change.keys = grown<int64_t>(keys, on, keys_of_change);
  change.spaces = grown<int32_t>(spaces, on, keys_of_change);
  change.taken = grown<uint32_t>(taken, on, keys_of_change);
  change.absent = grown<uint8_t>(absent, on, keys_of_change);
  change.rows = grown<float>(rows, on, rows_of_change * options.dim);
}

/// Uploads the keys of a change and writes their rows to free rows, in batches of at most options_.rows_of_change.
void DeviceCache::write(Pool& pool, const Rows& from, bool only_present) {
  const auto count = static_cast<int64_t>(from.keys.size()), dim = int64_t{pool.options.dim};
  const int64_t piece = std::min(count, options_.rows_of_change);
  pool.reserve(count, piece);
  const StreamRef stream = writer_stream_.ref();
  const auto send = [&](const void* to, const auto& values) {
    copy_bytes(stream, const_cast<void*>(to), values.data(), values.size() * sizeof values[0]);
  };
  send(pool.change.keys, from.keys);
  send(pool.change.spaces, from.spaces);
  send(pool.change.absent, from.absent);
  for (int64_t first = 0; first < count; first += piece) {
    const int64_t some = std::min(piece, count - first);
    copy_bytes(stream, const_cast<float*>(pool.change.rows), from.rows.data() + first * dim,
               static_cast<size_t>(some * dim) * sizeof(float));
    ops::CacheChange part = pool.change;
    part.keys += first, part.spaces += first, part.absent += first, part.taken += first;
    part.count = some;
    part.only_present = only_present;
    ops::cache_write(writer_, pool.device, part);
    stream.synchronize();  // waits, because the next batch reuses the staging memory
  }
  pool.change.count = count;
  pool.change.only_present = only_present;
}

void DeviceCache::set(Pool& pool) { ops::cache_set(writer_, pool.device, state_of(state_), pool.change); }

void DeviceCache::remove(Pool& pool, bool only_untaken) {
  ops::CacheChange change = pool.change;
  change.only_untaken = only_untaken;
  ops::cache_remove(writer_, pool.device, change);
}

/// Uploads keys of a whole pool and removes them.
void DeviceCache::erase(Pool& pool, const Rows& removed) {
  const StreamRef stream = writer_stream_.ref();
  const auto count = static_cast<int64_t>(removed.keys.size());
  stream.synchronize();
  pool.reserve(count, 0);
  copy_bytes(stream, const_cast<int64_t*>(pool.change.keys), removed.keys.data(),
             static_cast<size_t>(count) * sizeof(int64_t));
  copy_bytes(stream, const_cast<int32_t*>(pool.change.spaces), removed.spaces.data(),
             static_cast<size_t>(count) * sizeof(int32_t));
  pool.change.count = count;
  remove(pool, false);
}

/// Waits for look-ups that began before the changes of entries so far, and may still read rows of the old entries.
void DeviceCache::wait_for_lookups() {
  const StreamRef stream = writer_stream_.ref();
  ops::CacheState* const state = state_of(state_);
  ops::cache_next_epoch(writer_, state);
  ops::CacheState seen;
  const auto read = [&] {
    copy_bytes(stream, &seen, state, sizeof seen);
    stream.synchronize();
  };
  read();
  const auto epoch = seen.epoch;
  const auto waits = [&] {
    return std::any_of(std::begin(seen.sessions), std::end(seen.sessions),
                       [&](const ops::CacheSession& session) { return session.epoch != 0 && session.epoch < epoch; });
  };
  while (waits()) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    read();
  }
}

/// Frees retired rows, after waiting for look-ups that may still read them.
void DeviceCache::end_change() {
  wait_for_lookups();
  for (const auto& pool : pools_) ops::cache_reclaim(writer_, pool->device);
  ops::cache_set_era(writer_, state_of(state_), ++era_);
  writer_stream_.ref().synchronize();
}

void DeviceCache::replace(int32_t number, std::span<const int64_t> keys, const float* rows, const uint8_t* absent) {
  const Space of = space(number);
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  Pool& pool = *pools_[static_cast<size_t>(of.pool)];
  for (size_t first = 0; first < keys.size(); first += static_cast<size_t>(options_.rows_of_change)) {
    const size_t count = std::min(keys.size() - first, static_cast<size_t>(options_.rows_of_change));
    Rows some;
    some.keys.assign(keys.begin() + static_cast<ptrdiff_t>(first),
                     keys.begin() + static_cast<ptrdiff_t>(first + count));
    some.spaces.assign(count, number);
    some.rows.assign(rows + first * static_cast<size_t>(of.dim), rows + (first + count) * static_cast<size_t>(of.dim));
    some.absent.assign(count, 0);
    if (absent) std::copy_n(absent + first, count, some.absent.begin());
    write(pool, some, false);
    set(pool);
    if (pool.options.whole && counts_of(pool).refused > 0) {
      ops::cache_begin_update(writer_, state_of(state_));
      outgrow(static_cast<size_t>(of.pool));
      ops::cache_end_update(writer_, state_of(state_));
    }
    end_change();
  }
}

void DeviceCache::update(std::span<const Update> updates, uint64_t number) {
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  std::vector<Rows> written(pools_.size()), removed(pools_.size());
  for (const Update& one : updates) {
    const Space of = space(one.space);
    Rows& rows = written[static_cast<size_t>(of.pool)];
    rows.keys.insert(rows.keys.end(), one.keys.begin(), one.keys.end());
    rows.rows.insert(rows.rows.end(), one.rows, one.rows + one.keys.size() * static_cast<size_t>(of.dim));
    rows.absent.resize(rows.keys.size(), 0);
    rows.spaces.resize(rows.keys.size(), one.space);
    updated_ += static_cast<int64_t>(one.keys.size());
    // In a whole pool, removed keys are erased. In other pools, removed keys remain as keys known to have no row, so
    // that look-ups do not ask the source.
    Rows& gone = pools_[static_cast<size_t>(of.pool)]->options.whole ? removed[static_cast<size_t>(of.pool)] : rows;
    gone.keys.insert(gone.keys.end(), one.removed.begin(), one.removed.end());
    gone.spaces.resize(gone.keys.size(), one.space);
    gone.absent.resize(gone.keys.size(), 1);
    gone.rows.resize(gone.keys.size() * static_cast<size_t>(of.dim));
  }
  // Look-ups that overlap the time from begin() to the end are repeated.
  bool begun = false;
  const auto begin = [&] {
    if (!std::exchange(begun, true)) ops::cache_begin_update(writer_, state_of(state_));
  };
  // If a whole pool has fewer free rows than an update has keys, the excess is applied first, in parts.
  for (size_t p = 0; p < pools_.size(); ++p) {
    Pool& pool = *pools_[p];
    Rows& rows = written[p];
    const auto dim = static_cast<size_t>(pool.options.dim);
    auto most = static_cast<size_t>(pool.spare);
    if (pool.options.whole && rows.keys.size() > most) most = std::max<size_t>(most, counts_of(pool).free_rows);
    while (pool.options.whole && rows.keys.size() > most) {
      const auto tail = rows.keys.size() - most;
      Rows part{{rows.keys.begin() + static_cast<ptrdiff_t>(tail), rows.keys.end()},
                {rows.spaces.begin() + static_cast<ptrdiff_t>(tail), rows.spaces.end()},
                {rows.rows.begin() + static_cast<ptrdiff_t>(tail * dim), rows.rows.end()},
                {rows.absent.begin() + static_cast<ptrdiff_t>(tail), rows.absent.end()}};
      rows.keys.resize(tail), rows.spaces.resize(tail), rows.rows.resize(tail * dim), rows.absent.resize(tail);
      write(pool, part, false);
      begin();
      set(pool);
      outgrow(p);
      end_change();
    }
  }
  for (size_t p = 0; p < pools_.size(); ++p)
    if (!written[p].keys.empty()) write(*pools_[p], written[p], !pools_[p]->options.whole);
  begin();
  for (size_t p = 0; p < pools_.size(); ++p) {
    if (written[p].keys.empty()) continue;
    set(*pools_[p]);
    // keys whose rows did not fit are removed, so that later look-ups miss them
    if (!outgrow(p) && !pools_[p]->options.whole) remove(*pools_[p], true);
  }
  for (size_t p = 0; p < pools_.size(); ++p)
    if (!removed[p].keys.empty()) erase(*pools_[p], removed[p]);
  ops::cache_end_update(writer_, state_of(state_));
  end_change();
  applied_ = number;
}

ops::CacheCounts DeviceCache::counts_of(const Pool& pool) {
  ops::CacheCounts counts{};
  copy_bytes(writer_stream_.ref(), &counts, pool.device.counts, sizeof counts);
  writer_stream_.ref().synchronize();
  return counts;
}

/// If a whole pool had no room for keys of the current change, it becomes a pool of some keys: it is emptied, and its
/// keys are admitted again when look-ups miss them. Returns whether this happened. Call between the begin and the end
/// of an update, because look-ups that overlap it must be repeated.
bool DeviceCache::outgrow(size_t number) {
  Pool& pool = *pools_[number];
  if (!pool.options.whole) return false;
  const ops::CacheCounts before = counts_of(pool);
  if (before.refused == 0) return false;
  const size_t entries = static_cast<size_t>(pool.device.sets) * ops::kCacheWays;
  int64_t rows = 0;
  {
    const std::lock_guard lock(lists_);
    pool.options.whole = pool.device.whole = false;
    pool.device.sets =
        static_cast<uint32_t>(std::max<int64_t>(1, (int64_t{pool.device.row_capacity} - pool.spare) / ops::kCacheWays));
    pool.options.rows = int64_t{pool.device.sets} * ops::kCacheWays;
    for (const auto& one : pools_) rows += one->options.whole ? 0 : one->options.rows;
  }
  pool.evicted += int64_t{before.keys} + before.evicted;
  const StreamRef stream = writer_stream_.ref();
  copy_bytes(stream, pool_list_.data() + number * sizeof(ops::CachePool), &pool.device, sizeof(ops::CachePool));
  zero_bytes(stream, pool.device.entries, entries * sizeof *pool.device.entries);
  wait_for_lookups();
  ops::cache_clear(writer_, pool.device);
  stream.synchronize();
  const std::lock_guard lock(pending_lock_);
  admission_.resize(rows);
  return true;
}

void DeviceCache::forget(int32_t number) {
  const std::vector<int64_t> keys = keys_by_use(number);
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  Pool& pool = *pools_[static_cast<size_t>(space(number).pool)];
  const auto count = static_cast<int64_t>(keys.size());
  const std::vector<int32_t> spaces(keys.size(), number);
  pool.reserve(count, 0);
  copy_bytes(writer_stream_.ref(), const_cast<int64_t*>(pool.change.keys), keys.data(), keys.size() * sizeof(int64_t));
  copy_bytes(writer_stream_.ref(), const_cast<int32_t*>(pool.change.spaces), spaces.data(),
             spaces.size() * sizeof(int32_t));
  pool.change.count = count;
  remove(pool, false);
  end_change();
}

/// Counts misses of distinct keys, and schedules keys for admission. A key that a whole pool lacks has no row: it would
/// only use up the pool's spare rows.
void DeviceCache::consider(int32_t number, std::span<const int64_t> keys) {
  const Space of = space(number);
  if (whole(of.pool)) return;
  const std::lock_guard lock(pending_lock_);
  Rows& pending = pending_[static_cast<size_t>(of.pool)];
  for (const int64_t key : keys) {
    if (admission_.count(number, key) < options_.admit_after) continue;
    // skipped keys are counted again at their next miss
    if (pending.keys.size() >= static_cast<size_t>(options_.rows_of_change)) break;
    pending.keys.push_back(key);
    pending.spaces.push_back(number);
  }
  if (!pending.keys.empty() && (!working_ || is_batch(pending))) pending_changed_.notify_all();
}

/// Whether the keys to admit need not wait for more keys.
bool DeviceCache::is_batch(const Rows& pending) const {
  return pending.keys.size() >= static_cast<size_t>(options_.rows_of_change + 1) / 2;
}

void DeviceCache::work() {
  std::unique_lock lock(pending_lock_);
  while (true) {
    const auto next =
        std::find_if(pending_.begin(), pending_.end(), [](const Rows& rows) { return !rows.keys.empty(); });
    if (ends_) return;
    if (next == pending_.end()) {
      working_ = false;
      pending_changed_.notify_all();
      pending_changed_.wait(lock);
      continue;
    }
    const auto pool = static_cast<size_t>(next - pending_.begin());
    working_ = true;
    // Changes delay concurrent look-ups, so the keys of several look-ups are admitted together.
    constexpr std::chrono::milliseconds kMostWait{5};
    pending_changed_.wait_for(lock, kMostWait, [&] { return ends_ || settling_ > 0 || is_batch(pending_[pool]); });
    if (ends_) return;
    Rows rows;
    std::swap(rows, pending_[pool]);
    lock.unlock();
    std::exception_ptr failure;
    try {
      bring_in(static_cast<int32_t>(pool), std::move(rows));
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
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
void DeviceCache::bring_in(int32_t number, Rows wanted) {
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  Pool& pool = *pools_[static_cast<size_t>(number)];
  const auto dim = static_cast<size_t>(pool.options.dim);
  std::vector<std::pair<int32_t, int64_t>> unique;
  for (size_t i = 0; i < wanted.keys.size(); ++i) unique.emplace_back(wanted.spaces[i], wanted.keys[i]);
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  Rows rows;
  for (const auto& [space, key] : unique) rows.spaces.push_back(space), rows.keys.push_back(key);
  rows.rows.resize(unique.size() * dim);
  std::vector<uint8_t> found(unique.size());
  if (updates_of_source() != applied_) return;
  for (size_t first = 0, end = 0; first < unique.size(); first = end) {
    while (end < unique.size() && rows.spaces[end] == rows.spaces[first]) ++end;
    source_.rows(rows.spaces[first], std::span(rows.keys).subspan(first, end - first), rows.rows.data() + first * dim,
                 found.data() + first);
  }
  if (updates_of_source() != applied_) return;
  for (const uint8_t one : found) rows.absent.push_back(one == 0);
  write(pool, rows, false);
  set(pool);
  end_change();
  admitted_ += static_cast<int64_t>(unique.size());
}

void DeviceCache::settle() {
  std::unique_lock lock(pending_lock_);
  ++settling_;
  pending_changed_.notify_all();
  pending_changed_.wait(lock, [&] {
    return !working_ &&
           std::all_of(pending_.begin(), pending_.end(), [](const Rows& rows) { return rows.keys.empty(); });
  });
  --settling_;
}

}  // namespace hctr
