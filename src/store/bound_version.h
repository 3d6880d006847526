// A device cache that is bound to one version of a model.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hctr/store_cache.h"
#include "store/cache_plan.h"
#include "store/device_cache.h"
#include "store/version.h"

namespace hctr {

/// Thread-safe, except fill().
class HCTR_HIDDEN BoundVersion {
 public:
  using Version = StoreView::Version;

  /// `device`: the cache's device; null: there is no cache, and the store answers requests.
  BoundVersion(StoreView, std::shared_ptr<const Version>, const StoreCacheOptions&, const Device* device);
  ~BoundVersion();
  BoundVersion(const BoundVersion&) = delete;
  BoundVersion& operator=(const BoundVersion&) = delete;

  /// Chooses the tables to cache completely and loads them. For each other table, loads the keys that `before` used
  /// most recently; `before` may be null. Subscribes to updates of the version. Call with the locks of Store::State
  /// held. Errors: Error(device).
  void fill(BoundVersion* before);

  /// Returns the cache of a view's version on a device. All models that use the version share this cache. Creates the
  /// cache if no model uses it yet, and loads the keys that another version of the model used most recently. Errors:
  /// those of fill(); Error(config) if another program changes the store's rows.
  static std::shared_ptr<BoundVersion> shared(const StoreView&, Device);
  static const StoreShared& store_of(const StoreView& view) { return *view.state()->store; }

  /// `default_value`: replaces the default values of the tables.
  StoreCache::Answer lookup(std::span<const StoreCache::Part>, void* stream, std::optional<float> default_value = {});
  /// Calls `work`, which makes several look-ups, such that all of them read one state of the version. If an update
  /// changed rows during the call, calls `work` again. The last attempt blocks updates.
  void in_one_state(const std::function<void()>& work);
  StoreCacheStatistics statistics() const;
  const StoreView& view() const { return view_; }
  /// Null: there is no cache.
  const Device* device() const { return device_ ? &*device_ : nullptr; }
  const Version& version() const { return *version_; }

 private:
  using Content = ReadCopies<Version::Content>::Reading;
  struct PoolOfTable {
    int32_t pool;
    bool whole;
  };

  class HostVectors;
  /// Passes updates of the version to a BoundVersion, until that BoundVersion is destroyed.
  struct Link {
    std::mutex lock;
    BoundVersion* to;  // guarded by `lock`; null: destroyed
  };
  void make_pools();
  /// Identifies the current state of the version; none while the cache lacks an update.
  std::optional<std::pair<uint64_t, int64_t>> settled_state() const;
  void warm(StoreTable&, size_t number, BoundVersion& before);
  std::vector<int64_t> hot_keys(const std::string& table, int32_t slot);
  int32_t space_of(size_t table, int32_t slot);
  void read(int32_t space, std::span<const int64_t> keys, float* rows, uint8_t* found) const;
  void take(const std::vector<ChangesOfTable>&, uint64_t number);
  void check(std::span<const StoreCache::Part>) const;
  StoreCache::Answer read_all(std::span<const StoreCache::Part>) const;
  void name_missing(std::span<const StoreCache::Part>, void* stream) const;

  StoreView view_;
  std::shared_ptr<const Version> version_;
  StoreCacheOptions options_;
  std::optional<Device> device_;
  std::vector<PoolOfTable> pools_;  // [table] the table's pool
  std::vector<float> defaults_;     // [table] the table's default value
  mutable std::shared_mutex spaces_lock_;
  std::map<std::pair<size_t, int32_t>, int32_t> spaces_;  // [table, slot] the key space in the cache
  std::vector<std::pair<size_t, int32_t>> places_;        // [key space] the table and slot of these keys
  std::mutex idle_lock_;
  std::vector<std::unique_ptr<HostBuffer>> idle_;  // page-locked memory for vectors on the host
  std::mutex failure_lock_;
  std::exception_ptr failure_;
  std::unique_ptr<DeviceCache> cache_;  // null without a device
  std::shared_ptr<Link> link_;
  std::shared_ptr<const Version::Listener> listener_;
};

/// The GPU cache of models that use a view.
struct CacheOfView {
  StoreCacheOptions options;
  bool possible;  ///< false: another program changes the rows
};
CacheOfView cache_of(const StoreView&);

/// Creates a StoreCache on a device. The CPU is the reference implementation of the GPU's cache. `Device` null: no
/// cache.
StoreCache cache_on(const Store&, std::string_view model, const StoreCacheOptions&, const Device*);

}  // namespace hctr
