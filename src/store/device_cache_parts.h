// The components of a DeviceCache: pools and look-up sessions.
#pragma once

#include "store/device_cache.h"

namespace hctr {

struct DeviceCache::Pool {
  Pool(Device, const CachePoolOptions&, int64_t rows_of_change);
  /// Reserves device memory for a change of `keys` keys, and for staging `rows` rows.
  void reserve(int64_t keys, int64_t rows);

  CachePoolOptions options;
  int64_t spare;        ///< rows that must be free after each change
  int64_t evicted = 0;  ///< keys that left with the pool's first entries, when it was whole no more
  Buffer memory;
  ops::CachePool device{};
  // Memory of the change in progress.
  Buffer keys, spaces, taken, absent, rows;
  ops::CacheChange change{};
};

/// The memory of a look-up. A session serves one look-up at a time.
struct DeviceCache::Session {
  Session(Device on, int32_t index) : number(index), device(on), answer(on, sizeof(ops::CacheAnswer)) {}
  /// Reserves memory for a request. No look-up may be in progress.
  void reserve(size_t request_bytes, size_t keys);
  void reserve_answers(size_t found, size_t values, size_t bags);
  ops::CacheAnswer said() const;

  int32_t number;
  Device device;
  HostBuffer answer;
  std::unique_ptr<HostBuffer> request, misses, found, values, bags;
  Buffer request_there, places;
  std::unique_ptr<Event> done;  ///< null: no work was queued yet
  ops::CacheLookup lookup{};
  std::vector<ops::CachePart> parts{};
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

template <class T>
T* elements_of(const HostBuffer& buffer) {
  return reinterpret_cast<T*>(buffer.data());
}

}  // namespace hctr
