// Rows of a store's model in the memory of a GPU, for look-ups that write their vectors there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/export.h"
#include "hctr/store.h"

namespace hctr {

struct Device;

struct StoreCacheOptions {
  enum class Rows { f32, f16, bf16, fp8, int8 };  ///< fp8 (e4m3) and int8 with one scale a row
  int gpu = 0;                                    ///< -1: no GPU, the levels of the store answer
  /// Of GPU memory, for rows and what finds them; 0: four fifths of what is free. There are two caches while one
  /// version takes over from another.
  int64_t bytes = 0;
  Rows rows = Rows::f32;
  int admit_after = 2;  ///< requests that miss a key until its row comes into the cache
  /// Keys that the cache lacks get the default row, and nobody waits for the store; they are counted.
  bool default_on_miss = false;
  int wait_ms = 100;  ///< that a request waits for an update to reach the cache, before the store alone answers it
};

struct StoreCacheStatistics {
  std::string version;
  std::vector<std::string> whole_tables;  ///< that lie in GPU memory with all their rows
  int64_t keys = 0, bytes = 0;            ///< now
  int64_t requests = 0, asked = 0;        ///< asked: keys
  int64_t misses = 0;                     ///< keys that the store was asked for, or that were given the default for it
  int64_t defaults = 0;                   ///< keys that were given the default row
  int64_t admitted = 0, evicted = 0, updated = 0;  ///< rows
  int64_t repeated = 0;                            ///< requests looked up again, since an update ran meanwhile
  int64_t bypassed = 0;                            ///< requests that the store alone answered
};

/// The first level of a store: tables that fit are in GPU memory whole, of the others the rows that are asked for most.
/// Each answer is, bit for bit, that of the store (with two-byte and one-byte rows: of the store's rows rounded to
/// them), of one state of the version. Updates of the store reach the cache before Store::apply() returns.
///
/// Any thread calls any member. Requests take no locks that updates hold.
class HCTR_API StoreCache {
 public:
  /// Loads the tables of the model's active version that fit. The store outlives the cache. Errors: Error(usage) for an
  /// unknown model; Error(device) where memory does not suffice for 1024 rows of each table.
  StoreCache(const Store&, std::string_view model, const StoreCacheOptions&);
  ~StoreCache();
  StoreCache(StoreCache&&) noexcept;
  StoreCache& operator=(StoreCache&&) noexcept;

  /// One table's part of a request. Vectors: of the GPU, or of the host without one.
  struct Part {
    size_t table = 0;  ///< its number in the version (StoreView::table())
    std::span<const int64_t> keys{};
    /// Vector b is made of the rows of keys [offsets[b], offsets[b + 1]), as StoreView::get_pooled() does. Empty: a
    /// vector for each key.
    std::span<const int64_t> offsets{};
    StoreView::Pooling pooling = StoreView::Pooling::sum;
    float* vectors = nullptr;
    int64_t stride = 0;  ///< elements from one vector to the next; 0: dim
    int32_t slot = 0;    ///< of a table whose rows belong to slot and key
    /// Keys and offsets are in memory of the GPU, in the order of the stream; the caller has checked them.
    bool keys_on_gpu = false;
  };
  struct Answer {
    int64_t misses = 0, defaults = 0;  ///< as in StoreCacheStatistics
  };
  /// Writes the vectors in the order of `stream`, a cudaStream_t (null: the default stream). Errors: Error(usage) for
  /// parts that do not fit; Error(data) where a key has no row and the model's OnMiss is error; those of the store.
  Answer lookup(std::span<const Part>, void* stream = nullptr);

  /// Loads another version of the model into a cache of its own, with the keys that were used last, and makes it the
  /// active one of the store. Requests under way end with the version that they began with. A newer or an older
  /// version.
  void activate(std::string_view version);
  /// The version that requests get now.
  StoreView view() const;

  StoreCacheStatistics statistics() const;

 private:
  friend StoreCache cache_on(const Store&, std::string_view, const StoreCacheOptions&, const Device*);
  struct HCTR_HIDDEN State;
  explicit StoreCache(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace hctr
