// Caches of a store's rows, by the C interface.
#include "hctr/store_cache.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "capi/array.h"
#include "capi/call.h"
#include "capi/store_handle.h"
#include "capi/store_view.h"
#include "core/base/expect.h"
#include "core/device/current_device.h"
#include "core/device/stream.h"

struct hctr_store_cache {
  hctr::StoreCache cache;
};

namespace hctr::capi {
namespace {

StoreCache& cache_at(hctr_store_cache* cache) {
  expect_given(cache, "the hctr_store_cache");
  return cache->cache;
}

/// Checks that an array is in host memory, or on the GPU of the cache.
void expect_reachable(const hctr_array& array, int gpu, const std::string& what) {
  if (array.gpu < 0 || array.gpu == gpu) return;
  throw Error(Kind::usage, cat(what, " are on GPU ", array.gpu, ", but the cache ",
                               gpu < 0 ? std::string("has no GPU: pass host memory")
                                       : cat("is on GPU ", gpu, ": pass memory of that GPU or host memory")));
}

/// The parts of a request, with the memory that their spans refer to.
class Request {
 public:
  Request(const StoreView& view, int gpu) : tables_(view.tables()), gpu_(gpu) {}

  void add(const hctr_store_lookup& from) {
    if (from.table >= tables_.size())
      throw Error(Kind::usage, cat("there is no table ", from.table, ": the version has ", tables_.size(), " tables"));
    const StoreView::Table& table = tables_[from.table];
    const std::string name = cat("of table '", table.name, "'");
    StoreCache::Part part{.table = from.table, .slot = from.slot, .keys_on_gpu = from.keys.gpu >= 0};
    part.keys = numbers(from.keys, cat("keys ", name));
    auto count = static_cast<int64_t>(part.keys.size());
    if (from.offsets.data) {
      if ((from.offsets.gpu >= 0) != part.keys_on_gpu)
        throw Error(Kind::usage, cat("keys and offsets ", name,
                                     " are in different memories: pass both on the host, "
                                     "or both on the GPU"));
      part.offsets = numbers(from.offsets, cat("offsets ", name));
      if (part.offsets.empty())
        throw Error(Kind::usage, cat("offsets ", name, " have no element, expected at least 1"));
      count = static_cast<int64_t>(part.offsets.size()) - 1;
      if (from.pooling < HCTR_SUM || from.pooling > HCTR_SQRTN)
        throw Error(Kind::usage, cat("hctr_store_lookup: unknown pooling ", from.pooling));
      part.pooling = static_cast<StoreView::Pooling>(from.pooling);
    }
    const std::string what = cat("vectors ", name);
    expect_reachable(from.vectors, gpu_, what);
    const Matrix matrix = matrix_of(from.vectors, what);
    if (matrix.rows < count || matrix.columns != table.dim)
      throw Error(Kind::usage, cat(what, " have shape [", matrix.rows, ", ", matrix.columns, "], expected [", count,
                                   ", ", table.dim, "]"));
    if (count == 0) return;
    part.vectors = matrix.data;
    part.stride = matrix.stride;
    part.vectors_on_host = gpu_ >= 0 && from.vectors.gpu < 0;
    writes_gpu_ = writes_gpu_ || from.vectors.gpu >= 0;
    parts_.push_back(part);
  }
  std::span<const StoreCache::Part> parts() const { return parts_; }
  bool writes_gpu() const { return writes_gpu_; }

 private:
  std::span<const int64_t> numbers(const hctr_array& from, const std::string& what) {
    expect_reachable(from, gpu_, what);
    if (from.gpu < 0) return host_.emplace_back(keys_of_array(from, what));
    const auto* const data = static_cast<const int64_t*>(contiguous(from, 1, what));
    if (from.dtype != HCTR_I64 && from.dtype != HCTR_U64)
      throw Error(Kind::usage, cat(what, " on a GPU must have 64 bits: convert them to int64"));
    return {data, static_cast<size_t>(from.shape[0])};
  }

  std::vector<StoreView::Table> tables_;
  int gpu_;
  bool writes_gpu_ = false;
  std::deque<std::vector<int64_t>> host_;
  std::vector<StoreCache::Part> parts_;
};

}  // namespace
}  // namespace hctr::capi

using hctr::capi::cache_at;
using hctr::capi::call;
using hctr::capi::expect_given;

hctr_status hctr_store_cache_create(hctr_store* store, const char* model, int32_t gpu, hctr_store_cache** cache) {
  return call([&] {
    expect_given(model, "hctr_store_cache_create(): the model");
    expect_given(cache, "hctr_store_cache_create(): the pointer to the handle");
    const hctr::Store& of = hctr::capi::store_at(store);
    hctr::StoreCacheOptions options = of.cache_options();
    options.gpu = gpu;
    *cache = new hctr_store_cache{hctr::StoreCache(of, model, options)};
  });
}

void hctr_store_cache_destroy(hctr_store_cache* cache) { delete cache; }

hctr_status hctr_store_cache_look_up(hctr_store_cache* cache, const hctr_store_lookup* lookups, size_t count,
                                     void* stream, int64_t* missing) {
  return call([&] {
    hctr::StoreCache& of = cache_at(cache);
    hctr::capi::Request request(of.view(), of.gpu());
    for (size_t i = 0; i < count; ++i)
      request.add(hctr::capi::read_struct(lookups, i, "hctr_store_cache_look_up(): the lookups"));
    int64_t without = 0;
    if (!request.parts().empty()) without = of.lookup(request.parts(), stream).defaults;
    if (!stream && request.writes_gpu()) {
      const hctr::Device device{hctr::DeviceKind::cuda, of.gpu()};
      const hctr::CurrentDevice current(device);
      hctr::StreamRef{device, nullptr}.synchronize();
    }
    if (missing) *missing = without;
  });
}

hctr_status hctr_store_cache_activate(hctr_store_cache* cache, const char* version) {
  return call([&] {
    expect_given(version, "hctr_store_cache_activate(): the version");
    cache_at(cache).activate(version);
  });
}

hctr_status hctr_store_cache_view(hctr_store_cache* cache, hctr_store_view** view) {
  return call([&] {
    expect_given(view, "hctr_store_cache_view(): the pointer to the handle");
    *view = new hctr_store_view(cache_at(cache).view());
  });
}

hctr_status hctr_store_cache_statistics(hctr_store_cache* cache, hctr_store_cache_state* state) {
  return call([&] {
    hctr::StoreCache& of = cache_at(cache);
    const hctr::StoreCacheStatistics now = of.statistics();
    thread_local std::string version;
    version = now.version;
    const hctr_store_cache_state to{
        sizeof to,   version.c_str(), of.gpu(),     static_cast<int64_t>(now.whole_tables.size()),
        now.keys,    now.bytes,       now.requests, now.asked,
        now.misses,  now.defaults,    now.admitted, now.evicted,
        now.updated, now.repeated,    now.bypassed};
    hctr::capi::write_struct(to, state, "hctr_store_cache_state");
  });
}
