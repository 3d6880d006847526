// Rows of tables in the memory of a device, for look-ups that find nearly all of their keys there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "ops/cache/row_cache.h"
#include "store/cache_admission.h"

namespace hctr {

/// Rows of one width and type, of any number of tables.
struct CachePoolOptions {
  int32_t dim = 0;
  ops::CachedType type = ops::CachedType::f32;
  int64_t rows = 0;    ///< at most about so many keys
  bool whole = false;  ///< every key of its tables is put: none is evicted, and one that is not here has no row
};

/// Who has all rows.
struct CacheSource {
  /// rows: [keys, dim]; found: [keys], 0 at the call. Called by any thread, with different keys.
  std::function<void(int32_t space, std::span<const int64_t> keys, float* rows, uint8_t* found)> rows;
  /// How many updates the rows show, before and after a call of rows(); the cache has one of them once
  /// DeviceCache::update() had its number. Null: rows never change.
  std::function<uint64_t()> updates{};
};

/// One table's part of a look-up. `vectors` points to memory of the device.
struct CacheRequest {
  int32_t space = 0;
  std::span<const int64_t> keys{};
  std::span<const int64_t> offsets{};  ///< [vectors + 1]; empty: a vector for each key
  ops::Combiner combiner = ops::Combiner::sum;
  float* vectors = nullptr;
  int64_t stride = 0;       ///< elements; 0: dim
  bool keys_there = false;  ///< keys and offsets are in memory of the device, written by work queued on the stream
};

/// What keys without a cached row get.
enum class CacheMisses {
  answered,  ///< the row that the source has
  defaulted  ///< the default; nobody waits
};

struct CacheResult {
  int64_t misses = 0;    ///< keys that the cache did not have, as often as they occur
  int64_t defaults = 0;  ///< keys that were given the default
};

struct CacheStatistics {
  int64_t keys = 0, bytes = 0;
  int64_t look_ups = 0, asked = 0, misses = 0, defaults = 0;  ///< of look-ups that waited
  int64_t admitted = 0, evicted = 0, updated = 0;
  int64_t repeated = 0;  ///< look-ups that an update made mixed
  int64_t bypassed = 0;  ///< look-ups that only the source answered, since the cache was behind it for too long
};

/// Any thread calls any member. Look-ups of a GPU take no lock that changes hold. Changes follow each other. On the
/// CPU, where this is the reference, all calls follow each other.
class DeviceCache {
 public:
  struct Options {
    Device device{};
    int64_t rows_of_change = 16384;  ///< the most that come in or change at a time
    int admit_after = 2;             ///< a key is admitted after so many look-ups have missed it
    int sessions = 16;               ///< look-ups at a time, at most ops::kCacheSessions; more wait
    int wait_ms = 100;               ///< that a look-up waits for an update that the source shows already
  };
  DeviceCache(const Options&, CacheSource);
  ~DeviceCache();
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;

  /// Bytes of the device that a pool takes.
  static int64_t bytes_of(const CachePoolOptions&, int64_t rows_of_change);
  /// Errors: Error(device) where memory runs out.
  int32_t add_pool(const CachePoolOptions&);
  /// A table: its keys are apart from those of others.
  int32_t add_space(int32_t pool, float default_value);

  /// Writes the vectors, in the order of the stream. With CacheMisses::answered all rows are of one update, and the
  /// keys that were missed come in later; the call waits until the GPU has looked up. Otherwise it waits only where
  /// `result` is wanted, and rows may be from before and after an update that runs meanwhile.
  void lookup(std::span<const CacheRequest>, StreamRef, CacheMisses, CacheResult* result = nullptr);

  /// Puts rows, of new keys too. absent: [keys], may be null: not 0 where the key has no row. Waits.
  void replace(int32_t space, std::span<const int64_t> keys, const float* rows, const uint8_t* absent = nullptr);
  /// An update of one or more tables, seen whole or not at all: rows of keys that are here change, and `removed` have
  /// no row any more. In a pool that is whole new keys come in; one of more than its spare rows is seen in parts.
  /// `number`: that CacheSource::updates() gives once it shows this update. Waits.
  struct Update {
    int32_t space = 0;
    std::span<const int64_t> keys{};
    const float* rows = nullptr;  ///< [keys, dim]
    std::span<const int64_t> removed{};
  };
  void update(std::span<const Update>, uint64_t number);
  /// The keys of a table with a row, the last used ones first.
  std::vector<int64_t> keys_by_use(int32_t space);
  /// Removes all keys of a table, which is not used any more.
  void forget(int32_t space);
  /// Waits until the keys that were missed so far, and are to come in, are here.
  void settle();

  CacheStatistics statistics();
  Device device() const { return options_.device; }

 private:
  struct Pool;
  struct Session;
  struct Space {
    int32_t pool, dim;
    float default_value;
  };
  /// Keys of one pool that are to be written, with rows.
  struct Rows {
    std::vector<int64_t> keys;
    std::vector<int32_t> spaces;
    std::vector<float> rows;
    std::vector<uint8_t> absent;
  };
  class Lease;

  Space space(int32_t number) const;
  void check(std::span<const CacheRequest>) const;
  bool look_up_once(Session&, std::span<const CacheRequest>, StreamRef, CacheResult&);
  void start(Session&, std::span<const CacheRequest>, StreamRef, bool lists_misses);
  void await_answer(Session&, StreamRef) const;
  void answer(Session&, std::span<const CacheRequest>, StreamRef, std::vector<ops::CacheMiss>, CacheResult&);
  void answer_all(Session&, std::span<const CacheRequest>, StreamRef, CacheResult&);
  uint64_t updates_of_source() const { return source_.updates ? source_.updates() : applied_.load(); }
  void consider(int32_t space, std::span<const int64_t> keys);
  void work();
  void rethrow_failure();
  void bring_in(int32_t pool, Rows);

  // Under `changing_`.
  void write(Pool&, const Rows&, bool only_present);
  void set(Pool&);
  void remove(Pool&, bool only_untaken);
  void end_change();

  Options options_;
  CacheSource source_;
  Runtime runtime_;
  Stream writer_stream_;
  Context writer_;
  Buffer state_, pool_list_;
  mutable std::mutex lists_;  // guards `spaces_` and `pools_`
  std::vector<Space> spaces_;
  std::vector<std::unique_ptr<Pool>> pools_;

  std::mutex changing_;
  std::atomic<uint64_t> applied_{0};
  uint32_t era_ = 0;

  std::mutex sessions_lock_;
  std::condition_variable session_free_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Session*> free_sessions_;

  std::mutex pending_lock_;
  std::condition_variable pending_changed_;
  std::vector<Rows> pending_;  // by pool; rows and absent are empty
  CacheAdmission admission_{0};
  bool working_ = false, ends_ = false;
  std::exception_ptr failure_;  // of the thread that brings keys in; the next look-up throws it
  std::atomic<int64_t> look_ups_{0}, asked_{0}, misses_{0}, defaults_{0}, admitted_{0}, updated_{0}, repeated_{0},
      bypassed_{0};
  std::thread worker_;
};

}  // namespace hctr
