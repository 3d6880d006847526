// Look-ups in a DeviceCache. One kernel reads the cached rows; the source provides the rows of missed keys.
#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
#include "store/device_cache.h"
#include "store/device_cache_parts.h"

namespace hctr {
namespace {

using Clock = std::chrono::steady_clock;

int64_t vectors_of(const CacheRequest& request) {
  return static_cast<int64_t>(request.offsets.empty() ? request.keys.size() : request.offsets.size() - 1);
}

}  // namespace

std::byte* grown_host(std::unique_ptr<HostBuffer>& buffer, Device device, size_t bytes) {
  if (!buffer || buffer->bytes() < bytes)
    buffer = std::make_unique<HostBuffer>(device, std::max(bytes, buffer ? 2 * buffer->bytes() : size_t{4096}));
  return buffer->data();
}

DeviceCache::Lease::Lease(DeviceCache& cache) : cache_(cache) {
  std::unique_lock lock(cache_.sessions_lock_);
  cache_.session_free_.wait(lock, [&] { return !cache_.free_sessions_.empty(); });
  session_ = cache_.free_sessions_.back();
  cache_.free_sessions_.pop_back();
}

DeviceCache::Lease::~Lease() {
  {
    const std::lock_guard lock(cache_.sessions_lock_);
    cache_.free_sessions_.push_back(session_);
  }
  cache_.session_free_.notify_one();
}

void DeviceCache::Session::reserve(size_t request_bytes, size_t keys) {
  finish();
  grown_host(request, device, request_bytes);
  grown_host(misses, device, std::max<size_t>(1, keys) * sizeof(ops::CacheMiss));
  if (request_there.bytes() < request_bytes) request_there = Buffer(device, 2 * request_bytes);
  if (places.bytes() < keys * sizeof(int32_t)) places = Buffer(device, 2 * keys * sizeof(int32_t));
}

void DeviceCache::Session::record(StreamRef stream) {
  if (!done) done = std::make_unique<Event>(stream.device);
  done->record(stream);
  recorded = true;
}

void DeviceCache::Session::finish() {
  if (recorded) done->synchronize();
  recorded = false;
}

ops::CacheAnswer DeviceCache::Session::said() const {
  auto* const at = elements_of<uint64_t>(answer);
  const uint64_t words[] = {std::atomic_ref(at[0]).load(std::memory_order_acquire),
                            std::atomic_ref(at[1]).load(std::memory_order_acquire)};
  return std::bit_cast<ops::CacheAnswer>(words);
}

bool DeviceCache::Session::answered() const {
  const ops::CacheAnswer now = said();
  return now.ticket == ticket && now.ticket_again == ticket;
}

void DeviceCache::check(std::span<const CacheRequest> requests) const {
  size_t keys = 0;
  for (const CacheRequest& request : requests) {
    const Space of = space(request.space);
    HCTR_EXPECT(request.stride == 0 || request.stride >= of.dim, "vectors of ", of.dim, " every ", request.stride);
    if (!request.offsets.empty() && !request.keys_there)
      HCTR_EXPECT(request.offsets.front() >= 0 && request.offsets.back() <= static_cast<int64_t>(request.keys.size()) &&
                      std::is_sorted(request.offsets.begin(), request.offsets.end()),
                  "offsets must ascend to at most ", request.keys.size(), " keys");
    keys += request.keys.size();
  }
  HCTR_EXPECT(keys < (size_t{1} << 31), "a look-up of ", keys, " keys");
}

/// The request buffer of a session: the parts, then the offsets and keys that are in host memory.
struct DeviceCache::RequestLayout {
  explicit RequestLayout(std::span<const CacheRequest> requests) {
    size_t keys_here = 0, offsets_here = 0;
    for (const CacheRequest& request : requests) {
      keys += request.keys.size();
      if (request.keys_there) continue;
      keys_here += request.keys.size();
      offsets_here += request.offsets.size();
    }
    offsets_at = (requests.size() * sizeof(ops::CachePart) + 15) / 16 * 16;
    keys_at = offsets_at + offsets_here * sizeof(int64_t);
    bytes = keys_at + keys_here * sizeof(int64_t);
  }
  size_t keys = 0, offsets_at = 0, keys_at = 0, bytes = 0;
};

/// Lists the parts of a look-up, and copies host numbers to the request buffer. `there`: the buffer's address on the
/// device.
void DeviceCache::list_parts(Session& session, std::span<const CacheRequest> requests, const RequestLayout& layout,
                             std::byte* there) {
  std::byte* const here = session.request->data();
  session.parts.clear(), session.dims.clear(), session.types.clear();
  session.lookup = {.only_f32 = true};
  size_t key = 0, sent = 0, sent_offsets = 0;
  // Copies host numbers to the request buffer. Returns their address on the device.
  const auto send = [&](std::span<const int64_t> numbers, size_t begin, size_t& count) {
    std::copy(numbers.begin(), numbers.end(), reinterpret_cast<int64_t*>(here + begin) + count);
    count += numbers.size();
    return reinterpret_cast<const int64_t*>(there + begin) + count - numbers.size();
  };
  for (const CacheRequest& request : requests) {
    const Space of = space(request.space);
    const int64_t* const keys_there =
        request.keys_there ? request.keys.data() : send(request.keys, layout.keys_at, sent);
    const int64_t* const offsets_there =
        request.keys_there ? request.offsets.data() : send(request.offsets, layout.offsets_at, sent_offsets);
    session.parts.push_back({.pool = of.pool,
                             .space = request.space,
                             .first_item = session.lookup.items,
                             .first_key = static_cast<int64_t>(key),
                             .keys = keys_there,
                             .offsets = request.offsets.empty() ? nullptr : offsets_there,
                             .combiner = request.combiner,
                             .out = request.vectors,
                             .stride = request.stride == 0 ? of.dim : request.stride,
                             .default_value = request.default_value.value_or(of.default_value)});
    session.lookup.items += vectors_of(request);
    session.lookup.has_bags |= !request.offsets.empty();
    session.lookup.most_dim = std::max(session.lookup.most_dim, of.dim);
    session.dims.push_back(of.dim);
    session.types.push_back(type_of(of.pool));
    session.lookup.only_f32 &= session.types.back() == ops::CachedType::f32;
    key += request.keys.size();
  }
}

/// Queues the look-up. The kernel reads a small request directly from page-locked memory. A larger request is first
/// copied to the device: parts, offsets and keys together. Once the GPU has answered, only the second kernel of a
/// look-up with bags still uses the session's memory.
void DeviceCache::start(Session& session, std::span<const CacheRequest> requests, StreamRef stream, CacheMisses misses,
                        bool is_awaited) {
  const RequestLayout layout(requests);
  session.reserve(layout.bytes, layout.keys);
  std::byte* const here = session.request->data();
  // A copy is faster for larger requests, and for requests with offsets, which kernels read several times.
  constexpr size_t kFewBytes = 64 << 10;
  const bool few = requests.size() <= ops::CacheLookup::kFewParts && layout.bytes <= kFewBytes &&
                   std::ranges::all_of(requests, [](const auto& request) { return request.offsets.empty(); });
  std::byte* const there = few ? here : session.request_there.data();
  list_parts(session, requests, layout, there);
  ops::CacheLookup& lookup = session.lookup;
  if (few) {
    std::ranges::copy(session.parts, lookup.few_parts);
  } else {
    std::ranges::copy(session.parts, reinterpret_cast<ops::CachePart*>(here));
    copy_bytes(stream, there, here, layout.bytes);
    lookup.parts = reinterpret_cast<const ops::CachePart*>(there);
  }
  lookup.pools = reinterpret_cast<const ops::CachePool*>(pool_list_.data());
  lookup.part_count = static_cast<int32_t>(requests.size());
  lookup.keys = static_cast<int64_t>(layout.keys);
  lookup.places = lookup.has_bags ? reinterpret_cast<int32_t*>(session.places.data()) : nullptr;
  lookup.misses = elements_of<ops::CacheMiss>(*session.misses);
  lookup.state = reinterpret_cast<ops::CacheState*>(state_.data());
  lookup.session = session.number;
  lookup.epoch = epoch_;
  lookup.generation = generation_;
  lookup.answer = elements_of<ops::CacheAnswer>(session.answer);
  lookup.ticket = ++session.ticket;
  lookup.lists_misses = is_awaited;
  lookup.takes_stale = misses == CacheMisses::defaulted;
  Context ctx(runtime_, stream);
  ops::cache_lookup(ctx, lookup);
  if (!is_awaited || lookup.has_bags) session.record(stream);
}

/// The GPU writes its answer to host memory. Polling that memory is faster than synchronizing with the stream.
void DeviceCache::await_answer(Session& session, StreamRef stream) const {
  const auto until = Clock::now() + std::chrono::milliseconds(2);
  while (!session.answered()) {
    if (Clock::now() < until) continue;
    stream.synchronize();  // throws if queued work has failed
    HCTR_EXPECT(session.answered(), "the GPU did not answer a look-up");
  }
}

void DeviceCache::lookup(std::span<const CacheRequest> requests, StreamRef stream, CacheMisses misses,
                         CacheResult* result) {
  check(requests);
  if (requests.empty()) return;
  rethrow_failure();
  const CurrentDevice current(options_.device);
  // On the CPU, changes write the memory that a look-up reads, so a look-up holds the lock of changes.
  std::unique_lock alone(changing_, std::defer_lock);
  if (!options_.device.is_cuda()) alone.lock();
  const Lease lease(*this);
  Session& session = *lease;
  CacheResult counts;
  if (misses == CacheMisses::defaulted) {
    start(session, requests, stream, misses, result != nullptr);
    if (!result) return;
    await_answer(session, stream);
    try {
      default_misses(session, stream, counts);
    } catch (...) {  // memory may be full, for example
      leave(session, stream);
      throw;
    }
  } else {
    const auto until = Clock::now() + std::chrono::milliseconds(options_.wait_ms);
    while (!look_up_once(session, requests, stream, counts)) {
      ++repeated_;
      if (alone) alone.unlock(), alone.lock();
      if (Clock::now() < until) continue;
      ++bypassed_;
      answer_all(session, requests, stream, counts);
      break;
    }
  }
  ++look_ups_;
  for (const CacheRequest& request : requests) asked_ += static_cast<int64_t>(request.keys.size());
  misses_ += counts.misses;
  defaults_ += counts.defaults;
  if (result) *result = counts;
}

/// Ends the session of a look-up whose misses stay unanswered. Otherwise updates would wait for it.
void DeviceCache::leave(Session& session, StreamRef stream) {
  Context ctx(runtime_, stream);
  ops::cache_leave(ctx, session.lookup.state, session.number);
  session.record(stream);
}

/// Returns false if rows may come from different updates, so that the look-up must be repeated.
bool DeviceCache::look_up_once(Session& session, std::span<const CacheRequest> requests, StreamRef stream,
                               CacheResult& counts) {
  const uint64_t applied = applied_;
  start(session, requests, stream, CacheMisses::answered, true);
  await_answer(session, stream);
  const ops::CacheAnswer said = session.said();
  counts = {said.misses, said.defaults};
  if (said.mixed == 0 && said.misses == 0) return true;
  const auto* const listed = elements_of<const ops::CacheMiss>(*session.misses);
  if (said.mixed == 0 && updates_of_source() == applied) {
    try {
      answer(session, stream, {listed, said.misses}, counts);
    } catch (...) {  // the source failed
      leave(session, stream);
      throw;
    }
    if (updates_of_source() == applied && applied_ == applied) return true;
  } else if (said.misses > 0) {
    leave(session, stream);
  }
  if (updates_of_source() != applied_) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return false;
}

/// Answers all keys from the source and ignores the cache. The source is asked once for each part. If an update changed
/// rows between these calls, asks for all parts again.
void DeviceCache::answer_all(Session& session, std::span<const CacheRequest> requests, StreamRef stream,
                             CacheResult& counts) {
  std::vector<ops::CacheMiss> all;
  session.finish();
  const auto here = [&](std::span<const int64_t> numbers, bool is_there) {
    std::vector<int64_t> copy(numbers.size());
    if (is_there) {
      copy_bytes(stream, copy.data(), numbers.data(), numbers.size_bytes());
      stream.synchronize();
    } else {
      std::copy(numbers.begin(), numbers.end(), copy.begin());
    }
    return copy;
  };
  for (size_t p = 0; p < requests.size(); ++p) {
    const ops::CachePart& part = session.parts[p];
    const std::vector<int64_t> keys = here(requests[p].keys, requests[p].keys_there);
    const std::vector<int64_t> offsets = here(requests[p].offsets, requests[p].keys_there);
    int64_t bag = 0;
    for (int64_t i = offsets.empty() ? 0 : offsets.front(),
                 end = offsets.empty() ? static_cast<int64_t>(keys.size()) : offsets.back();
         i < end; ++i) {
      while (!offsets.empty() && offsets[static_cast<size_t>(bag) + 1] <= i) ++bag;
      all.push_back({keys[static_cast<size_t>(i)], part.first_item + (offsets.empty() ? i : bag),
                     static_cast<int32_t>(p), static_cast<int32_t>(part.first_key + i)});
    }
  }
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t updates = updates_of_source();
    counts = {static_cast<int64_t>(all.size()), 0};
    answer(session, stream, all, counts);
    if (updates_of_source() == updates) return;
    session.finish();  // the next answer reuses the session's memory
  }
  throw Error(Kind::data, "a look-up could not run between two updates of the tables: update less often");
}

}  // namespace hctr
