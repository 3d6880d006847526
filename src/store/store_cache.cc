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
  /// The GPU that the options name; none: the store's levels answer.
  static std::optional<Device> gpu_of(const StoreCacheOptions&);
  std::shared_ptr<BoundVersion> now() const {
    const std::lock_guard lock(pointer);
    return bound;
  }

  std::shared_ptr<Store::State> store;
  std::string model;
  StoreCacheOptions options;
  std::optional<Device> device;
  std::mutex activating;  // serializes activate()
  mutable std::mutex pointer;
  std::shared_ptr<BoundVersion> bound;  // guarded by `pointer`
};

StoreCache cache_on(const Store& store, std::string_view model, const StoreCacheOptions& options,
                    const Device* device) {
  check_cache_options(options);
  if (device && store.state()->shared->changes_elsewhere)
    throw Error(Kind::config,
                "another program changes rows of the store, and a GPU cache would return old rows: set gpu to -1");
  auto state = std::make_unique<StoreCache::State>();
  state->store = store.state();
  state->model = model;
  state->options = options;
  if (device) state->device = *device;
  const StoreView view = store.view(model);
  state->bound = std::make_shared<BoundVersion>(view, view.state(), options, device);
  const std::scoped_lock changing(state->store->updating, state->store->changing);
  state->bound->fill(nullptr);
  return StoreCache(std::move(state));
}

StoreCache::StoreCache(std::unique_ptr<State> state) : state_(std::move(state)) {}

std::optional<Device> StoreCache::State::gpu_of(const StoreCacheOptions& options) {
  if (options.gpu == -1) return std::nullopt;
  const GpuSearch gpus = find_gpus();
  const std::string found =
      cat(gpus.count, " GPUs were found", gpus.count == 0 ? cat(" (", gpus.why_none, ")") : std::string());
  if (options.gpu == StoreCacheOptions::kGpuIfAny) {
    if (gpus.count > 0) return Device{DeviceKind::cuda, 0};
    if (options.needs_gpu)
      throw Error(Kind::device, cat("the cache of the store needs a GPU: ", found,
                                    "; without \"needs_gpu\" the levels of the store answer"));
    return std::nullopt;
  }
  if (options.gpu < 0 || options.gpu >= gpus.count)
    throw Error(Kind::device, cat("there is no GPU ", options.gpu, " for a cache: ", found,
                                  "; set gpu to -1 to read from the levels of the store without a GPU"));
  return Device{DeviceKind::cuda, options.gpu};
}

StoreCache::StoreCache(const Store& store, std::string_view model, const StoreCacheOptions& options) {
  const std::optional<Device> device = State::gpu_of(options);
  *this = cache_on(store, model, options, device ? &*device : nullptr);
}

StoreCache::StoreCache(const Store& store, std::string_view model) : StoreCache(store, model, store.cache_options()) {}

StoreCache::~StoreCache() = default;
StoreCache::StoreCache(StoreCache&&) noexcept = default;
StoreCache& StoreCache::operator=(StoreCache&&) noexcept = default;

StoreCache::Answer StoreCache::lookup(std::span<const Part> parts, void* stream) {
  return state_->now()->lookup(parts, stream);
}

void StoreCache::activate(std::string_view name) {
  const std::lock_guard activating(state_->activating);
  Store::State& store = *state_->store;
  const auto version = store.version(state_->model, name);
  if (!version) throw Error(Kind::usage, cat("the store has no version '", name, "' of '", state_->model, "'"));
  const auto next =
      std::make_shared<BoundVersion>(StoreView(version), version, state_->options, state_->device_or_none());
  const std::scoped_lock changing(store.updating, store.changing);
  next->fill(state_->now().get());
  store.activate(state_->model, name);
  const std::lock_guard lock(state_->pointer);
  state_->bound = next;
}

StoreView StoreCache::view() const { return state_->now()->view(); }

int StoreCache::gpu() const { return state_->device && state_->device->is_cuda() ? state_->device->index : -1; }

StoreCacheStatistics StoreCache::statistics() const { return state_->now()->statistics(); }

}  // namespace hctr
