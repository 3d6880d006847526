// A GPU cache for rows of a store's model. Look-ups write their vectors to GPU memory.
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

struct StoreCacheStatistics {
  std::string version;
  std::vector<std::string> whole_tables;  ///< tables whose rows are all in GPU memory
  int64_t keys = 0, bytes = 0;            ///< number of keys and bytes in the cache
  int64_t requests = 0, asked = 0;        ///< asked: number of requested keys
  /// number of keys that the cache lacked, so that the store looked them up, or they got the default row
  int64_t misses = 0;
  int64_t defaults = 0;                            ///< number of keys that got the default row
  int64_t admitted = 0, evicted = 0, updated = 0;  ///< numbers of rows: added; evicted; changed by updates
  int64_t repeated = 0;                            ///< requests looked up twice because of a concurrent update
  int64_t bypassed = 0;                            ///< requests that the store answered without the cache
};

/// A cache above a store's levels. Tables that fit are completely in GPU memory; for other tables, and for tables that
/// outgrow their memory, the cache has the most requested rows. Each answer reads one state of the version, and equals
/// the store's answer bit for bit. If the cache's rows are not f32, an answer is the store's answer computed from rows
/// that are rounded to the type of the cache's rows. Updates of the store reach the cache before Store::apply()
/// returns.
///
/// Thread-safe. Requests take no locks that updates hold.
class HCTR_API StoreCache {
 public:
  /// Loads the tables of the model's active version that fit. Errors: Error(usage) for an unknown model; Error(device)
  /// if there is no memory for 1024 rows of each table; Error(config) for a store whose rows another program changes.
  StoreCache(const Store&, std::string_view model, const StoreCacheOptions&);
  /// Makes a cache with the options StoreOptions::cache.
  StoreCache(const Store&, std::string_view model);
  ~StoreCache();
  StoreCache(StoreCache&&) noexcept;
  StoreCache& operator=(StoreCache&&) noexcept;

  /// One table's part of a request. Vectors are in GPU memory, or in host memory if the cache has no GPU.
  struct Part {
    size_t table = 0;  ///< the table's index in the version (StoreView::table())
    std::span<const int64_t> keys{};
    /// Vector b pools the rows of keys [offsets[b], offsets[b + 1]), like StoreView::get_pooled(). Empty: one vector
    /// per key.
    std::span<const int64_t> offsets{};
    StoreView::Pooling pooling = StoreView::Pooling::sum;
    float* vectors = nullptr;
    int64_t stride = 0;  ///< elements between the starts of two vectors; 0: dim
    int32_t slot = 0;    ///< the slot of the keys, if a (slot, key) pair identifies a row
    /// Keys and offsets are in GPU memory, ready in stream order. The caller has validated them.
    bool keys_on_gpu = false;
    /// The vectors are in host memory although the cache has a GPU. They are complete when lookup() returns.
    bool vectors_on_host = false;
  };
  struct Answer {
    int64_t misses = 0, defaults = 0;  ///< see StoreCacheStatistics
  };
  /// Writes the vectors, in the order of `stream`: a cudaStream_t (null: the default stream). Errors: Error(usage) for
  /// invalid parts; Error(data) if a key has no row and the model's OnMiss is error; those of the store.
  Answer lookup(std::span<const Part>, void* stream = nullptr);

  /// Loads another version of the model, newer or older, into a separate cache, preloads the most recently used keys,
  /// and activates the version in the store. Running requests finish with the version that they started with.
  void activate(std::string_view version);
  /// The version that new requests use.
  StoreView view() const;
  int gpu() const;  ///< -1: the store's levels answer

  StoreCacheStatistics statistics() const;

  struct HCTR_HIDDEN State;
  explicit StoreCache(std::unique_ptr<State>);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace hctr
