// Caches rows of tables in device memory. Most look-ups find nearly all keys in the cache.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "ops/cache/row_cache.h"
#include "store/cache_admission.h"

namespace hctr {

class ThreadPool;

/// A pool of rows of one vector size and dtype, from any number of tables.
struct CachePoolOptions {
  int32_t dim = 0;
  ops::CachedType type = ops::CachedType::f32;
  int64_t rows = 0;  ///< approximate maximum number of keys
  /// the pool contains all keys of its tables: keys are never evicted, and a missing key has no row, until an update
  /// adds more keys than the pool has room for
  bool whole = false;
};

/// The source that has all rows. The cache asks it for the rows of missed keys.
struct CacheSource {
  /// rows: [keys, dim]; found: [keys], zeroed by the caller. Called with distinct keys, from any thread and by several
  /// threads for one look-up.
  std::function<void(int32_t space, std::span<const int64_t> keys, float* rows, uint8_t* found)> rows;
  /// Returns the number of updates that the source's rows contain. The cache calls this before and after a call of
  /// rows(). The cache contains the same updates once DeviceCache::update() has received this number. Null: rows never
  /// change.
  std::function<uint64_t()> updates{};
};

/// The part of a look-up for one table. `vectors` points to device memory.
struct CacheRequest {
  int32_t space = 0;
  std::span<const int64_t> keys{};
  std::span<const int64_t> offsets{};  ///< [vectors + 1]; empty: one vector per key
  ops::Combiner combiner = ops::Combiner::sum;
  float* vectors = nullptr;
  int64_t stride = 0;  ///< elements from one vector to the next; 0: dim
  /// keys and offsets are in device memory, or will be once work queued on the stream has run
  bool keys_there = false;
  std::optional<float> default_value{};  ///< replaces the default value of the space
};

/// The result for keys without a cached row.
enum class CacheMisses {
  answered,  ///< the source's row
  defaulted  ///< the default value, without a call of the source; the key may be admitted later
};

struct CacheResult {
  int64_t misses = 0;    ///< occurrences of keys that the cache does not contain, or whose rows an update is replacing
  int64_t defaults = 0;  ///< occurrences of keys that received the default value
};

struct CacheStatistics {
  int64_t keys = 0, bytes = 0;
  int64_t look_ups = 0, asked = 0, misses = 0, defaults = 0;  ///< these count only look-ups that the host waited for
  int64_t admitted = 0, evicted = 0, updated = 0;
  int64_t repeated = 0;  ///< look-ups that were repeated because an update changed rows during the look-up
  int64_t bypassed = 0;  ///< look-ups answered by the source alone, because the cache lacked an update for too long
};

/// Thread-safe. Changes are serialized. On a GPU, a look-up never waits for a lock that a change holds. On the CPU, the
/// reference implementation, all calls are serialized.
class DeviceCache {
 public:
  struct Options {
    Device device{};
    int64_t rows_of_change = 16384;  ///< maximum number of rows that are admitted or changed at a time
    int admit_after = 2;             ///< number of look-ups that must miss a key before it is admitted
    /// maximum concurrent look-ups, at most ops::kCacheSessions; further look-ups wait
    int sessions = 16;
    int wait_ms = 100;  ///< maximum wait of a look-up for an update that the source already contains
  };
  DeviceCache(const Options&, CacheSource);
  ~DeviceCache();
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;

  /// The device memory of a pool in bytes.
  static int64_t bytes_of(const CachePoolOptions&, int64_t rows_of_change);
  /// Errors: Error(device) if memory is insufficient.
  int32_t add_pool(const CachePoolOptions&);
  /// Adds a key space for a table. Keys of different spaces are distinct.
  int32_t add_space(int32_t pool, float default_value);

  /// Writes the vectors, in stream order. With CacheMisses::answered, waits for the GPU's look-up; all rows are from
  /// the same update, and missed keys may be admitted later. With CacheMisses::defaulted, waits only if `result` is
  /// given, and rows may be a mixture from before and after a concurrent update. Without `result`, missed keys are
  /// neither counted nor admitted.
  void lookup(std::span<const CacheRequest>, StreamRef, CacheMisses, CacheResult* result = nullptr);

  /// Adds or replaces rows. absent: [keys], or null; nonzero marks a key without a row. Waits for the change.
  void replace(int32_t space, std::span<const int64_t> keys, const float* rows, const uint8_t* absent = nullptr);
  /// An update of one or more tables. Look-ups see the update as a whole or not at all. Rows of cached keys change;
  /// keys in `removed` lose their rows, unless they are in `keys` too. Whole pools also add new keys; a pool that has
  /// no room for them is no longer whole. `number`: the value of CacheSource::updates() that includes this update.
  /// Waits for the change. Look-ups with CacheMisses::answered read changed rows that the cache still lacks from the
  /// source.
  struct Update {
    int32_t space = 0;
    std::span<const int64_t> keys{};
    const float* rows = nullptr;  ///< [keys, dim]
    std::span<const int64_t> removed{};
  };
  void update(std::span<const Update>, uint64_t number);
  /// The keys of a table that have a row in the cache, most recently used first.
  std::vector<int64_t> keys_by_use(int32_t space);
  /// Whether the pool still contains all keys of its tables.
  bool whole(int32_t pool) const;
  /// Removes all keys of a table that is no longer used.
  void forget(int32_t space);
  /// Waits until all keys that are due for admission have been added.
  void settle();

  CacheStatistics statistics();
  int32_t dim(int32_t space_number) const { return space(space_number).dim; }
  uint64_t applied() const { return applied_; }   ///< the number of the last update()
  int64_t bypassed() const { return bypassed_; }  ///< as in CacheStatistics
  Device device() const { return options_.device; }

 private:
  struct Pool;
  struct Session;
  struct RequestLayout;
  struct Space {
    int32_t pool, dim;
    float default_value;
  };
  /// Rows to write to one pool; the keys are distinct.
  struct Rows {
    std::span<const int64_t> keys{};
    int32_t space = 0;
    const int32_t* spaces = nullptr;  // [keys]; null: all keys belong to `space`
    const float* rows = nullptr;      // [keys, dim]; null: the keys have no rows
    const uint8_t* absent = nullptr;  // [keys] not 0: the key has no row; null: see `rows`
    bool only_present = false;        ///< skips keys that have no entry
    bool in_background = false;       ///< leaves the threads of for_chunks() to look-ups
  };
  /// Rows on their way to the device: at most Options::rows_of_change.
  struct StagedRows {
    std::unique_ptr<HostBuffer> here{};
    Buffer there{}, taken{};
    size_t bytes = 0;
    ops::CacheChange change{};  // its arrays are in `there`
  };
  /// Keys of one pool that are due for admission.
  struct DueKeys {
    std::vector<int64_t> keys;
    std::vector<int32_t> spaces;
  };
  /// The missed keys of a look-up in one table, which are not counted yet.
  struct Missed {
    int32_t pool, space;
    std::vector<int64_t> keys;
  };
  class Lease;

  Space space(int32_t number) const;
  ops::CachedType type_of(int32_t pool) const;
  void check(std::span<const CacheRequest>) const;
  bool look_up_once(Session&, std::span<const CacheRequest>, StreamRef, CacheResult&);
  void list_parts(Session&, std::span<const CacheRequest>, const RequestLayout&, std::byte* there);
  void start(Session&, std::span<const CacheRequest>, StreamRef, CacheMisses, bool is_awaited);
  void await_answer(Session&, StreamRef) const;
  void leave(Session&, StreamRef);
  template <class Work>
  void for_chunks(size_t begin, size_t end, const Work&);
  void answer(Session&, StreamRef, std::span<const ops::CacheMiss>, CacheResult&);
  void default_misses(Session&, StreamRef, CacheResult&);
  void answer_all(Session&, std::span<const CacheRequest>, StreamRef, CacheResult&);
  uint64_t updates_of_source() const { return source_.updates ? source_.updates() : applied_.load(); }
  void consider(const Session&);
  bool is_due() const;
  bool has_batch() const;
  void count_missed(std::unique_lock<std::mutex>& of_pending);
  void work();
  void rethrow_failure();
  void bring_in(int32_t pool, const DueKeys&);

  // The caller holds `changing_`.
  template <class T>
  T* grown(Buffer&, size_t count) const;
  void stage(const Pool&, const Rows&, bool only_present, StagedRows&);
  void set(const Pool&, const StagedRows&);
  void write(size_t pool, const Rows&);
  size_t write_ahead(const Pool&, const Update&, uint32_t* taken);
  void switch_to(std::span<const Update>, std::span<const size_t> ahead, uint32_t* taken);
  void remove(const Pool&, int32_t space, std::span<const int64_t> keys);
  void await_lookups();
  void end_update();
  void reclaim(const Pool&);
  void end_era();
  ops::CacheCounts counts_of(const Pool&);
  void outgrow(size_t pool);

  Options options_;
  CacheSource source_;
  Runtime runtime_;
  Stream writer_stream_;
  Context writer_;
  Buffer state_, pool_list_;
  HostBuffer read_;           // memory for what a change reads from the GPU; guarded by `changing_`
  mutable std::mutex lists_;  // guards `spaces_` and `pools_`
  std::vector<Space> spaces_;
  std::vector<std::unique_ptr<Pool>> pools_;

  std::mutex changing_;
  std::atomic<uint64_t> applied_{0};
  // Copies of members of ops::CacheState, for look-ups. They are set after the GPU has set the members.
  std::atomic<uint64_t> epoch_{1};
  std::atomic<uint32_t> generation_{0};
  // Guarded by `changing_`.
  uint32_t era_ = 0;
  StagedRows staged_[2];
  // Memory on the device. marked_: keys to mark or to remove. taken_ahead_: numbers of the rows that write_ahead() has
  // written.
  Buffer marked_, taken_ahead_;

  std::mutex gathering_;                   // guards `gatherers_`
  std::unique_ptr<ThreadPool> gatherers_;  // null: not needed yet

  std::mutex sessions_lock_;
  std::condition_variable session_free_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Session*> free_sessions_;

  std::mutex pending_lock_;
  std::condition_variable pending_changed_;
  std::deque<Missed> missed_;
  std::atomic<int64_t> missed_count_{0};  // keys of `missed_`; changed under `pending_lock_`
  std::vector<DueKeys> pending_;          // [pool] keys to admit
  std::mutex admission_lock_;
  CacheAdmission admission_{0};
  bool working_ = false, ends_ = false;
  int settling_ = 0;            // callers of settle() that wait
  std::exception_ptr failure_;  // error of the admission thread; the next look-up throws it
  std::atomic<int64_t> look_ups_{0}, asked_{0}, misses_{0}, defaults_{0}, admitted_{0}, updated_{0}, repeated_{0},
      bypassed_{0};
  std::thread worker_;
};

}  // namespace hctr
