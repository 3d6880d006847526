#include "hctr/store_cache.h"

#include <mutex>
#include <optional>

#include "core/base/expect.h"
#include "core/device/device.h"
#include "hctr/error.h"
#include "store/bound_version.h"
#include "store/store_state.h"

namespace hctr {

struct StoreCache::State {
  const Device* device_or_none() const { return device ? &*device : nullptr; }
  std::shared_ptr<BoundVersion> now() const {
    const std::lock_guard lock(pointer);
    return bound;
  }

  const Store* store = nullptr;
  std::string model;
  StoreCacheOptions options;
  std::optional<Device> device;
  std::mutex activating;  // serializes activate()
  mutable std::mutex pointer;
  std::shared_ptr<BoundVersion> bound;  // guarded by `pointer`
};

StoreCache cache_on(const Store& store, std::string_view model, const StoreCacheOptions& options,
                    const Device* device) {
  if (options.bytes < 0 || options.admit_after < 1 || options.wait_ms < 0)
    throw Error(Kind::usage, "a cache needs bytes and wait_ms of at least 0, and admit_after of at least 1");
  auto state = std::make_unique<StoreCache::State>();
  state->store = &store;
  state->model = model;
  state->options = options;
  if (device) state->device = *device;
  const StoreView view = store.view(model);
  state->bound = std::make_shared<BoundVersion>(view, view.version_, options, device);
  const std::lock_guard updating(store.state_->updating);
  const std::lock_guard changing(store.state_->changing);
  state->bound->fill(nullptr);
  return StoreCache(std::move(state));
}

StoreCache::StoreCache(std::unique_ptr<State> state) : state_(std::move(state)) {}

StoreCache::StoreCache(const Store& store, std::string_view model, const StoreCacheOptions& options) {
  const Device device{DeviceKind::cuda, options.gpu};
  if (options.gpu >= 0)
    if (const GpuSearch gpus = find_gpus(); options.gpu >= gpus.count)
      throw Error(Kind::device, cat("there is no GPU ", options.gpu, " for a cache: ", gpus.count, " GPUs were found",
                                    gpus.count == 0 ? cat(" (", gpus.why_none, ")") : "",
                                    "; set gpu to -1 to read from the levels of the store without a GPU"));
  *this = cache_on(store, model, options, options.gpu >= 0 ? &device : nullptr);
}

StoreCache::~StoreCache() = default;
StoreCache::StoreCache(StoreCache&&) noexcept = default;
StoreCache& StoreCache::operator=(StoreCache&&) noexcept = default;

StoreCache::Answer StoreCache::lookup(std::span<const Part> parts, void* stream) {
  return state_->now()->lookup(parts, stream);
}

void StoreCache::activate(std::string_view name) {
  const std::lock_guard activating(state_->activating);
  Store::State& store = *state_->store->state_;
  const auto version = store.version(state_->model, name);
  if (!version) throw Error(Kind::usage, cat("the store has no version '", name, "' of '", state_->model, "'"));
  const auto next =
      std::make_shared<BoundVersion>(StoreView(version), version, state_->options, state_->device_or_none());
  const std::lock_guard updating(store.updating);
  const std::lock_guard changing(store.changing);
  next->fill(state_->now().get());
  store.activate(state_->model, name);
  const std::lock_guard lock(state_->pointer);
  state_->bound = next;
}

StoreView StoreCache::view() const { return state_->now()->view(); }

StoreCacheStatistics StoreCache::statistics() const { return state_->now()->statistics(); }

}  // namespace hctr
