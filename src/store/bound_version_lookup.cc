// Look-ups in a device cache that is bound to one version of a model.
#include <algorithm>
#include <cstring>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
#include "store/bound_version.h"

namespace hctr {
namespace {

ops::Combiner combiner_of(StoreView::Pooling pooling) {
  return pooling == StoreView::Pooling::sum    ? ops::Combiner::sum
         : pooling == StoreView::Pooling::mean ? ops::Combiner::mean
                                               : ops::Combiner::sqrtn;
}

size_t vectors_of(const StoreCache::Part& part) {
  return part.offsets.empty() ? part.keys.size() : part.offsets.size() - 1;
}

}  // namespace

/// Host memory for the vectors of a look-up. If the caller's memory is not page-locked, kernels write to page-locked
/// memory of this object, and deliver() copies the vectors to the caller.
class BoundVersion::HostVectors {
 public:
  HostVectors(BoundVersion& version, std::vector<CacheRequest>& requests, std::span<const StoreCache::Part> parts,
              const std::vector<int64_t>& dims)
      : version_(version) {
    size_t elements = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const StoreCache::Part& part = parts[p];
      if (!part.vectors_on_host || is_page_locked(*version.device_, part.vectors)) continue;
      const size_t count = vectors_of(part);
      parts_.push_back({p, elements, count, static_cast<size_t>(dims[p]),
                        part.stride == 0 ? static_cast<size_t>(dims[p]) : static_cast<size_t>(part.stride),
                        part.vectors});
      elements += count * static_cast<size_t>(dims[p]);
    }
    if (parts_.empty()) return;
    {
      const std::lock_guard lock(version.idle_lock_);
      if (!version.idle_.empty()) {
        memory_ = std::move(version.idle_.back());
        version.idle_.pop_back();
      }
    }
    const size_t bytes = std::max<size_t>(elements, 1) * sizeof(float);
    if (!memory_ || memory_->bytes() < bytes)
      memory_ = std::make_unique<HostBuffer>(*version.device_, std::max(bytes, memory_ ? 2 * memory_->bytes() : bytes));
    for (const Copy& one : parts_) {
      requests[one.part].vectors = reinterpret_cast<float*>(memory_->data()) + one.first;
      requests[one.part].stride = 0;
    }
  }
  ~HostVectors() {
    if (!memory_) return;
    const std::lock_guard lock(version_.idle_lock_);
    version_.idle_.push_back(std::move(memory_));
  }
  HostVectors(const HostVectors&) = delete;
  HostVectors& operator=(const HostVectors&) = delete;

  /// Call when the vectors are complete.
  void deliver() const {
    for (const Copy& one : parts_)
      for (size_t v = 0; v < one.count; ++v)
        std::memcpy(one.to + v * one.stride, reinterpret_cast<const float*>(memory_->data()) + one.first + v * one.dim,
                    one.dim * sizeof(float));
  }

 private:
  struct Copy {
    size_t part, first, count, dim, stride;
    float* to;
  };
  BoundVersion& version_;
  std::vector<Copy> parts_;
  std::unique_ptr<HostBuffer> memory_;
};

StoreCache::Answer BoundVersion::lookup(std::span<const StoreCache::Part> parts, void* stream,
                                        std::optional<float> default_value) {
  check(parts);
  std::exception_ptr failure;
  {
    const std::lock_guard lock(failure_lock_);
    failure = failure_;
  }
  if (failure) std::rethrow_exception(failure);
  if (!cache_) return read_all(parts);
  const CurrentDevice current(*device_);
  std::vector<CacheRequest> requests;
  std::vector<int64_t> dims;
  const auto add_request = [&](const StoreCache::Part& part) {
    requests.push_back({.space = space_of(part.table, part.slot),
                        .keys = part.keys,
                        .offsets = part.offsets,
                        .combiner = combiner_of(part.pooling),
                        .vectors = part.vectors,
                        .stride = part.stride,
                        .keys_there = part.keys_on_gpu,
                        .default_value = default_value});
    dims.push_back(cache_->dim(requests.back().space));
  };
  for (const StoreCache::Part& part : parts) add_request(part);
  const bool on_host = std::ranges::any_of(parts, [](const auto& part) { return part.vectors_on_host; });
  std::optional<HostVectors> to_host;
  if (on_host) to_host.emplace(*this, requests, parts, dims);
  const StreamRef in{*device_, stream};
  CacheResult result;
  cache_->lookup(requests, in, options_.default_on_miss ? CacheMisses::defaulted : CacheMisses::answered, &result);
  if (on_host) in.synchronize();
  if (result.defaults > 0 && version_->on_miss == OnMiss::error && !options_.default_on_miss)
    name_missing(parts, stream);
  if (to_host) to_host->deliver();
  return {result.misses, result.defaults};
}

std::optional<std::pair<uint64_t, int64_t>> BoundVersion::settled_state() const {
  const uint64_t number = Content(version_->content)->number;
  if (cache_->applied() != number) return std::nullopt;
  return std::pair(number, cache_->bypassed());
}

void BoundVersion::in_one_state(const std::function<void()>& work) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    const auto before = settled_state();
    work();
    if (before && settled_state() == before) return;
  }
  const std::lock_guard updating(version_->store->updating);
  work();
}

StoreCache::Answer BoundVersion::read_all(std::span<const StoreCache::Part> parts) const {
  StoreCache::Answer answer;
  const StoreReading reading(view_);
  std::vector<uint8_t> found;
  std::vector<float> rows;
  const std::vector<StoreView::Table> tables = view_.tables();
  for (const StoreCache::Part& part : parts) {
    found.assign(part.keys.size(), 0);
    int64_t missing = 0;
    if (part.offsets.empty()) {
      missing = reading.get(part.table, part.keys, part.vectors, part.stride, found.data(), part.slot);
    } else {
      missing =
          reading.get_pooled(part.table, part.keys, part.offsets, part.pooling, part.vectors, part.stride, part.slot);
      // get_pooled() counts each key without a row once, but the answer counts every occurrence
      if (missing > 0) {
        rows.resize(part.keys.size() * static_cast<size_t>(tables[part.table].dim));
        reading.get(part.table, part.keys, rows.data(), 0, found.data(), part.slot);
      }
    }
    if (missing > 0) answer.defaults += std::ranges::count(found, uint8_t{0});
  }
  return answer;
}

/// Looks the keys up in the store, so that the store throws an error with the first key without a row. If an update has
/// added rows for all keys meanwhile, throws an error that names no key.
void BoundVersion::name_missing(std::span<const StoreCache::Part> parts, void* stream) const {
  const StreamRef in{*device_, stream};
  const StoreReading reading(view_);
  const std::vector<StoreView::Table> tables = view_.tables();
  for (const StoreCache::Part& part : parts) {
    std::vector<int64_t> keys(part.keys.size());
    if (part.keys_on_gpu) {
      copy_bytes(in, keys.data(), part.keys.data(), part.keys.size_bytes());
      in.synchronize();
    } else {
      std::ranges::copy(part.keys, keys.begin());
    }
    std::vector<float> rows(keys.size() * static_cast<size_t>(tables[part.table].dim));
    reading.get(part.table, keys, rows.data(), 0, nullptr, part.slot);
  }
  throw Error(Kind::data, cat("model '", version_->model, "' had no row of a key when it was looked up"));
}

StoreCacheStatistics BoundVersion::statistics() const {
  StoreCacheStatistics all{.version = version_->name, .whole_tables = {}};
  if (!cache_) return all;
  const std::vector<StoreView::Table> tables = view_.tables();
  for (size_t t = 0; t < pools_.size(); ++t)
    if (cache_->whole(pools_[t].pool)) all.whole_tables.push_back(tables[t].name);
  const CacheStatistics of = cache_->statistics();
  all.keys = of.keys, all.bytes = of.bytes, all.requests = of.look_ups, all.asked = of.asked;
  all.misses = of.misses, all.defaults = of.defaults, all.admitted = of.admitted, all.evicted = of.evicted;
  all.updated = of.updated, all.repeated = of.repeated, all.bypassed = of.bypassed;
  return all;
}

}  // namespace hctr
