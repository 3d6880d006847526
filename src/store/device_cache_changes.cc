// Adds, changes and removes rows of a DeviceCache, one change at a time.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
#include "ops/cache/row_cache_rules.h"
#include "store/device_cache.h"
#include "store/device_cache_parts.h"

namespace hctr {
namespace {

constexpr size_t kRowsOfCopy = 1024;  // rows that one thread copies to page-locked memory at a time

ops::CacheState* state_of(const Buffer& buffer) { return reinterpret_cast<ops::CacheState*>(buffer.data()); }

}  // namespace

template <class T>
T* DeviceCache::grown(Buffer& buffer, size_t count) const {
  const size_t bytes = std::max<size_t>(count, 1) * sizeof(T);
  if (buffer.bytes() < bytes) {
    writer_stream_.ref().synchronize();
    buffer = Buffer(options_.device, bytes);
  }
  return reinterpret_cast<T*>(buffer.data());
}

/// Copies keys and rows to the page-locked memory `here`. An earlier copy from this memory to the device must be
/// complete.
void DeviceCache::stage(const Pool& pool, const Rows& from, bool only_present, StagedRows& staged) {
  const size_t count = from.keys.size(), row = static_cast<size_t>(pool.options.dim) * sizeof(float);
  HCTR_EXPECT(count <= static_cast<size_t>(options_.rows_of_change), count, " rows at once");
  staged.bytes = 0;
  const auto place = [&](size_t bytes) { return std::exchange(staged.bytes, staged.bytes + (bytes + 15) / 16 * 16); };
  const size_t rows_at = place(from.rows ? count * row : 0), keys_at = place(count * sizeof(int64_t)),
               spaces_at = place(from.spaces ? count * sizeof(int32_t) : 0), absent_at = place(from.absent ? count : 0);
  std::byte* const here = grown_host(staged.here, options_.device, staged.bytes);
  std::byte* const there = grown<std::byte>(staged.there, staged.bytes);
  std::memcpy(here + keys_at, from.keys.data(), count * sizeof(int64_t));
  if (from.spaces) std::memcpy(here + spaces_at, from.spaces, count * sizeof(int32_t));
  if (from.absent) std::memcpy(here + absent_at, from.absent, count);
  const auto copy_rows = [&](size_t chunk) {
    const size_t first = chunk * kRowsOfCopy, some = std::min(kRowsOfCopy, count - first);
    std::memcpy(here + rows_at + first * row, reinterpret_cast<const std::byte*>(from.rows) + first * row, some * row);
  };
  if (from.rows && from.in_background)
    for (size_t chunk = 0; chunk * kRowsOfCopy < count; ++chunk) copy_rows(chunk);
  else if (from.rows)
    for_chunks(0, (count + kRowsOfCopy - 1) / kRowsOfCopy, copy_rows);
  staged.change = {.keys = reinterpret_cast<const int64_t*>(there + keys_at),
                   .spaces = from.spaces ? reinterpret_cast<const int32_t*>(there + spaces_at) : nullptr,
                   .space = from.space,
                   .rows = from.rows ? reinterpret_cast<const float*>(there + rows_at) : nullptr,
                   .absent = from.absent ? reinterpret_cast<const uint8_t*>(there + absent_at) : nullptr,
                   .taken = grown<uint32_t>(staged.taken, count),
                   .count = static_cast<int64_t>(count),
                   .only_present = only_present};
}

/// Queues the kernels that write staged rows to free rows of the pool and set the entries.
void DeviceCache::set(const Pool& pool, const StagedRows& staged) {
  copy_bytes(writer_stream_.ref(), staged.there.data(), staged.here->data(), staged.bytes);
  ops::cache_write(writer_, pool.device, staged.change);
  ops::cache_set(writer_, pool.device, state_of(state_), staged.change);
  ops::cache_next_epoch(writer_, state_of(state_));
}

/// Waits until all look-ups have ended that began before the current epoch. They may still read rows of old entries.
void DeviceCache::await_lookups() {
  constexpr int kFewTries = 4;
  const StreamRef stream = writer_stream_.ref();
  for (int tries = 1;; ++tries) {
    copy_bytes(stream, read_.data(), state_of(state_), sizeof(ops::CacheState));
    stream.synchronize();
    const ops::CacheState& seen = *elements_of<ops::CacheState>(read_);
    epoch_ = seen.epoch;
    if (std::none_of(std::begin(seen.sessions), std::end(seen.sessions), [&](const ops::CacheSession& session) {
          return session.epoch != 0 && session.epoch < seen.epoch;
        }))
      return;
    if (tries >= kFewTries) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// Ends the update that cache_begin_update() has begun, and waits until the GPU has done so.
void DeviceCache::end_update() {
  ops::cache_end_update(writer_, state_of(state_));
  ops::cache_next_epoch(writer_, state_of(state_));
  writer_stream_.ref().synchronize();
  generation_ += 2;
}

/// Frees the rows that a change has retired.
void DeviceCache::reclaim(const Pool& pool) {
  await_lookups();
  ops::cache_reclaim(writer_, pool.device);
}

/// Ends a change. Entries that later look-ups use count as more recently used.
void DeviceCache::end_era() {
  ops::cache_set_era(writer_, state_of(state_), ++era_);
  writer_stream_.ref().synchronize();
}

/// Queues the removal of keys.
void DeviceCache::remove(const Pool& pool, int32_t space, std::span<const int64_t> keys) {
  if (keys.empty()) return;
  auto* const there = grown<int64_t>(marked_, keys.size());
  copy_bytes(writer_stream_.ref(), there, keys.data(), keys.size_bytes());
  ops::cache_remove(writer_, pool.device, {.keys = there, .space = space, .count = static_cast<int64_t>(keys.size())});
  ops::cache_next_epoch(writer_, state_of(state_));
}

/// Writes rows of any number of keys. Threads stage one piece while the GPU writes the previous one.
void DeviceCache::write(size_t number, const Rows& all) {
  Pool& pool = *pools_[number];
  const auto dim = static_cast<size_t>(pool.options.dim), most = static_cast<size_t>(options_.rows_of_change);
  const auto stage_from = [&](size_t first) {
    const size_t count = std::min(most, all.keys.size() - first);
    const Rows some{.keys = all.keys.subspan(first, count),
                    .space = all.space,
                    .spaces = all.spaces ? all.spaces + first : nullptr,
                    .rows = all.rows ? all.rows + first * dim : nullptr,
                    .absent = all.absent ? all.absent + first : nullptr,
                    .in_background = all.in_background};
    stage(pool, some, all.only_present, staged_[first / most % 2]);
  };
  if (!all.keys.empty()) stage_from(0);
  for (size_t first = 0; first < all.keys.size(); first += most) {
    set(pool, staged_[first / most % 2]);
    if (first + most < all.keys.size()) stage_from(first + most);
    reclaim(pool);
    if (pool.options.whole && counts_of(pool).refused > 0) return outgrow(number);
  }
}

void DeviceCache::replace(int32_t number, std::span<const int64_t> keys, const float* rows, const uint8_t* absent) {
  const Space of = space(number);
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  write(static_cast<size_t>(of.pool), {.keys = keys, .space = number, .rows = rows, .absent = absent});
  end_era();
}

/// Writes rows of an update to free rows of a whole pool, until the pool has no more free rows for this. No look-up
/// reads these rows before cache_set(). Returns the number of keys whose rows are written. `taken`: receives the
/// numbers of the rows.
size_t DeviceCache::write_ahead(const Pool& pool, const Update& update, uint32_t* taken) {
  if (update.keys.empty()) return 0;
  const auto dim = static_cast<size_t>(pool.options.dim), most = static_cast<size_t>(options_.rows_of_change);
  const size_t free = counts_of(pool).free_rows, spare = static_cast<size_t>(pool.spare);
  // later pieces of the update need the spare rows
  const size_t count = update.keys.size() <= free ? update.keys.size() : free - std::min(free, spare);
  const auto stage_from = [&](size_t first) {
    StagedRows& staged = staged_[first / most % 2];
    stage(pool,
          {.keys = update.keys.subspan(first, std::min(most, count - first)),
           .space = update.space,
           .rows = update.rows + first * dim,
           .in_background = true},
          false, staged);
    staged.change.taken = taken + first;
  };
  if (count > 0) stage_from(0);
  for (size_t first = 0; first < count; first += most) {
    const StagedRows& staged = staged_[first / most % 2];
    copy_bytes(writer_stream_.ref(), staged.there.data(), staged.here->data(), staged.bytes);
    ops::cache_write(writer_, pool.device, staged.change);
    if (first + most < count) stage_from(first + most);
    writer_stream_.ref().synchronize();
  }
  return count;
}

/// Makes look-ups see an update as a whole. Points entries at the rows that write_ahead() has written. Marks the other
/// changed rows as stale, so that look-ups read the new rows from the source. ahead[u]: the number of keys of update u
/// whose rows are written. `taken`: the numbers of these rows, update by update.
void DeviceCache::switch_to(std::span<const Update> updates, std::span<const size_t> ahead, uint32_t* taken) {
  size_t count = 0;
  for (const Update& one : updates) count += one.keys.size() + one.removed.size();
  if (count == 0) return;
  const StreamRef stream = writer_stream_.ref();
  auto* to = grown<int64_t>(marked_, count);
  const auto* const first = to;
  for (const Update& one : updates)
    for (const std::span<const int64_t> keys : {one.removed, one.keys}) {
      copy_bytes(stream, to, keys.data(), keys.size_bytes());
      to += keys.size();
    }
  // Look-ups are repeated if they overlap the time from this call to end_update().
  ops::cache_begin_update(writer_, state_of(state_));
  const int64_t* keys = first;
  for (size_t u = 0; u < updates.size(); ++u) {
    const Update& one = updates[u];
    const Pool& pool = *pools_[static_cast<size_t>(space(one.space).pool)];
    const auto next = [&](size_t some) {
      const ops::CacheChange change{
          .keys = keys, .space = one.space, .taken = taken, .count = static_cast<int64_t>(some)};
      keys += some;
      return change;
    };
    // In a whole pool, removed keys are erased. In other pools, removed keys remain as keys known to have no row, so
    // that look-ups do not ask the source.
    if (pool.options.whole)
      ops::cache_remove(writer_, pool.device, next(one.removed.size()));
    else
      ops::cache_mark(writer_, pool.device, next(one.removed.size()));
    ops::cache_set(writer_, pool.device, state_of(state_), next(ahead[u]));
    ops::cache_mark(writer_, pool.device, next(one.keys.size() - ahead[u]));
    taken += ahead[u];
  }
  ops::cache_set_applying(writer_, state_of(state_), true);
  end_update();
}

void DeviceCache::update(std::span<const Update> updates, uint64_t number) {
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  // The source has the update already, so look-ups with misses wait until switch_to() has run. If some pool can miss
  // keys, switch_to() therefore runs first, and the rows are written afterwards. If all pools are whole, the rows are
  // written first.
  size_t most_ahead = 0;
  if (std::ranges::all_of(pools_, [](const auto& pool) { return pool->options.whole; }))
    for (const Update& one : updates) most_ahead += one.keys.size();
  auto* const taken = grown<uint32_t>(taken_ahead_, most_ahead);
  std::vector<size_t> ahead(updates.size());
  for (size_t u = 0, done = 0; u < updates.size() && most_ahead > 0; done += ahead[u++])
    ahead[u] = write_ahead(*pools_[static_cast<size_t>(space(updates[u].space).pool)], updates[u], taken + done);
  switch_to(updates, ahead, taken);
  applied_ = number;
  for (size_t u = 0; u < updates.size(); ++u) {
    const Update& one = updates[u];
    const auto p = static_cast<size_t>(space(one.space).pool);
    Pool& pool = *pools_[p];
    if (pool.options.whole) {
      reclaim(pool);
      if (counts_of(pool).refused > 0) outgrow(p);
    } else {
      write(p, {.keys = one.removed, .space = one.space, .only_present = true});
    }
    write(p, {.keys = one.keys.subspan(ahead[u]),
              .space = one.space,
              .rows = one.rows + ahead[u] * static_cast<size_t>(pool.options.dim),
              .only_present = !pool.options.whole,
              .in_background = true});
    updated_ += static_cast<int64_t>(one.keys.size());
  }
  ops::cache_set_applying(writer_, state_of(state_), false);
  end_era();
}

ops::CacheCounts DeviceCache::counts_of(const Pool& pool) {
  copy_bytes(writer_stream_.ref(), read_.data(), pool.device.counts, sizeof(ops::CacheCounts));
  writer_stream_.ref().synchronize();
  return *elements_of<ops::CacheCounts>(read_);
}

/// Call if a whole pool had no room for keys. The pool stops being whole: all its keys are removed, and are admitted
/// again when look-ups miss them.
void DeviceCache::outgrow(size_t number) {
  Pool& pool = *pools_[number];
  const ops::CacheCounts before = counts_of(pool);
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
  ops::cache_begin_update(writer_, state_of(state_));  // look-ups that overlap this change are repeated
  copy_bytes(stream, pool_list_.data() + number * sizeof(ops::CachePool), &pool.device, sizeof(ops::CachePool));
  zero_bytes(stream, pool.device.entries, entries * sizeof *pool.device.entries);
  ops::cache_next_epoch(writer_, state_of(state_));
  await_lookups();
  ops::cache_clear(writer_, pool.device);
  end_update();
  const std::lock_guard lock(admission_lock_);
  admission_.resize(rows);
}

void DeviceCache::forget(int32_t number) {
  const std::vector<int64_t> keys = keys_by_use(number);
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  const Pool& pool = *pools_[static_cast<size_t>(space(number).pool)];
  remove(pool, number, keys);
  reclaim(pool);
  end_era();
}

}  // namespace hctr
