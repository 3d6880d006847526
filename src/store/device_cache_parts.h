// The components of a DeviceCache: pools and look-up sessions.
#pragma once

#include <algorithm>

#include "core/base/thread_pool.h"
#include "store/device_cache.h"

namespace hctr {

struct DeviceCache::Pool {
  Pool(Device, const CachePoolOptions&, int64_t rows_of_change);
  CachePoolOptions options;
  int64_t spare;        ///< rows that must be free after each change
  int64_t evicted = 0;  ///< keys that were removed when the pool stopped being whole
  Buffer memory;
  ops::CachePool device{};
};

/// The memory of a look-up. A session serves one look-up at a time.
struct DeviceCache::Session {
  Session(Device on, int32_t index) : number(index), device(on), answer(on, sizeof(ops::CacheAnswer)) {}
  /// Reserves memory for a request. No look-up may be in progress.
  void reserve(size_t request_bytes, size_t keys);
  void reserve_answers(size_t found, size_t values, size_t bags);
  void group(std::span<const ops::CacheMiss>);
  int64_t list_bags() const;
  /// Records that work queued so far uses the session's memory.
  void record(StreamRef);
  /// Waits for recorded work.
  void finish();
  ops::CacheAnswer said() const;
  bool answered() const;

  int32_t number;
  Device device;
  HostBuffer answer;
  std::unique_ptr<HostBuffer> request, misses, found, values, bags;
  Buffer request_there, places;
  std::unique_ptr<Event> done;
  bool recorded = false;  ///< queued work may still use the memory until `done`
  ops::CacheLookup lookup{};
  std::vector<ops::CachePart> parts{};
  std::vector<int64_t> dims{};                // [part] vector size
  std::vector<ops::CachedType> types{};       // [part] dtype of cached rows
  std::span<const ops::CacheMiss> grouped{};  ///< all misses, ordered by part
  std::vector<size_t> first_of_part{};        // [parts + 1] index in `grouped`
  std::vector<ops::CacheMiss> by_part{};      // memory of `grouped`
  uint32_t ticket = 0;
};

/// Acquires a free session for the duration of a call.
class DeviceCache::Lease {
 public:
  explicit Lease(DeviceCache&);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Session& operator*() const { return *session_; }

 private:
  DeviceCache& cache_;
  Session* session_;
};

/// Grows a host buffer to at least `bytes`. The contents are lost.
std::byte* grown_host(std::unique_ptr<HostBuffer>&, Device, size_t bytes);

/// Calls work(chunk) for the chunks [begin, end). Several threads share the calls, unless the chunks are few. While
/// another call uses these threads, the calling thread works alone.
template <class Work>
void DeviceCache::for_chunks(size_t begin, size_t end, const Work& work) {
  constexpr size_t kFewChunks = 3;  // waking threads takes longer than this work
  constexpr int kMostThreads = 16;  // further threads would not read faster from memory
  std::unique_lock lock(gathering_, std::defer_lock);
  while (begin < end && (end - begin <= kFewChunks || !lock.try_lock())) work(begin++);
  if (begin == end) return;
  if (!gatherers_) gatherers_ = std::make_unique<ThreadPool>(std::min(usable_cores(), kMostThreads));
  gatherers_->parallel_for(static_cast<int64_t>(end - begin), 1,
                           [&](int64_t c, int64_t) { work(begin + static_cast<size_t>(c)); });
}

template <class T>
T* elements_of(const HostBuffer& buffer) {
  return reinterpret_cast<T*>(buffer.data());
}

}  // namespace hctr
