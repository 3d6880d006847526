#include "cache_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <thread>

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "hctr/store.h"
#include "store/bound_version.h"
#include "timing.h"

namespace hctr::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct CacheCase {
  std::string name;
  int64_t rows, dim, keys;  // keys: number of keys per request
  double alpha;             // exponent of the keys' power law
  double share;             // fraction of rows that fit into the cache; 1: the cache has the whole table
  int64_t keys_of_bag = 1;  // keys per bag; 1: one vector per key
  bool keys_there = false;  // keys are in device memory
  StoreCacheOptions::Rows type = StoreCacheOptions::Rows::f32;
};

int64_t key_by_rank(int64_t rank, int64_t rows) {
  return static_cast<int64_t>(mix64(static_cast<uint64_t>(rank % rows)) >> 1);
}

/// Draws a rank from a power law, through the inverse of the continuous distribution.
int64_t drawn_rank(const CacheCase& of, uint64_t number) {
  const double u = static_cast<double>(mix64(number) >> 11) * 0x1p-53, most = static_cast<double>(of.rows);
  const double a = 1 - of.alpha;
  return std::clamp<int64_t>(static_cast<int64_t>(std::pow((std::pow(most + 1, a) - 1) * u + 1, 1 / a) - 1), 0,
                             of.rows - 1);
}

void load(Store& store, const CacheCase& of) {
  store.load({.name = "m",
              .version = "1",
              .tables = {{.name = "t", .dim = of.dim, .rows = [&](const StoreRowSink& sink) {
                            constexpr int64_t kChunk = 4096;
                            std::vector<int64_t> keys;
                            std::vector<float> rows(static_cast<size_t>(kChunk * of.dim));
                            for (int64_t first = 0; first < of.rows; first += kChunk) {
                              keys.clear();
                              for (int64_t r = first; r < std::min(of.rows, first + kChunk); ++r) {
                                std::fill_n(rows.begin() + static_cast<ptrdiff_t>((r - first) * of.dim), of.dim,
                                            static_cast<float>(r % 1000));
                                keys.push_back(key_by_rank(r, of.rows));
                              }
                              sink({}, keys, std::span(rows).first(keys.size() * static_cast<size_t>(of.dim)));
                            }
                          }}}});
}

double of_sorted(const std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

void time_case(Context& ctx, Store& store, const CacheCase& of, bool quick, Report& report) {
  const StreamRef stream = ctx.stream();
  const CachePoolOptions pool{
      .dim = static_cast<int32_t>(of.dim),
      .rows = std::max<int64_t>(1024, static_cast<int64_t>(of.share * static_cast<double>(of.rows)))};
  StoreCacheOptions options{.rows = of.type};
  if (of.share >= 1)
    options.share = 1;
  else
    options.bytes = DeviceCache::bytes_of(pool, 16384) + (1 << 20);
  const Device device = ctx.device();
  StoreCache cache = cache_on(store, "m", options, &device);

  const int times = quick ? 5 : of.keys > 100'000 ? 50 : 3000;
  // Each request to a partial cache has new keys, because otherwise the cache would soon contain all keys of the
  // requests.
  const int warm_up = quick ? 3 : of.share < 1 ? times : 12, sets = of.share < 1 ? warm_up + times : std::min(4, times);
  std::vector<std::vector<int64_t>> keys(static_cast<size_t>(sets));
  std::vector<Buffer> there;
  for (int s = 0; s < sets; ++s) {
    for (int64_t i = 0; i < of.keys; ++i)
      keys[static_cast<size_t>(s)].push_back(
          key_by_rank(drawn_rank(of, static_cast<uint64_t>(s) << 32 | static_cast<uint64_t>(i)), of.rows));
    there.emplace_back(device, static_cast<size_t>(of.keys) * sizeof(int64_t));
    copy_bytes(stream, there.back().data(), keys[static_cast<size_t>(s)].data(), there.back().bytes());
    stream.synchronize();
  }
  std::vector<int64_t> offsets;
  if (of.keys_of_bag > 1)
    for (int64_t at = 0; at <= of.keys; at += of.keys_of_bag) offsets.push_back(at);
  Buffer offsets_there(device, offsets.size() * sizeof(int64_t) + 8);
  copy_bytes(stream, offsets_there.data(), offsets.data(), offsets.size() * sizeof(int64_t));
  const Buffer vectors(device, static_cast<size_t>(of.keys / of.keys_of_bag * of.dim) * sizeof(float));
  stream.synchronize();
  const auto part = [&](int i) {
    const auto set = static_cast<size_t>(i % sets);
    StoreCache::Part one{.keys = keys[set], .offsets = offsets, .vectors = reinterpret_cast<float*>(vectors.data())};
    if (of.keys_there) {
      one.keys = {reinterpret_cast<const int64_t*>(there[set].data()), keys[set].size()};
      if (!offsets.empty()) one.offsets = {reinterpret_cast<const int64_t*>(offsets_there.data()), offsets.size()};
      one.keys_on_gpu = true;
    }
    return one;
  };
  const auto ask = [&](int i) {
    const StoreCache::Part one = part(i);
    cache.lookup({&one, 1}, stream.handle);
    stream.synchronize();
  };
  for (int i = 0; i < warm_up; ++i) ask(i);
  const StoreCacheStatistics before = cache.statistics();
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    ask(warm_up + i);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  const StoreCacheStatistics after = cache.statistics();
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / times;
  std::sort(seconds.begin(), seconds.end());
  const std::string where =
      cat(of.name, ": ", of.keys, " keys, dim ", of.dim, ", ", of.rows, " rows", of.keys_there ? ", keys there" : "");
  report.add(
      "hit rate", where,
      100 - 100.0 * static_cast<double>(after.misses - before.misses) / static_cast<double>(after.asked - before.asked),
      "%");
  report.add("  request, mean", where, 1e6 * mean, "us");
  report.add("  median", where, 1e6 * of_sorted(seconds, 0.5), "us");
  report.add("  99 of 100", where, 1e6 * of_sorted(seconds, 0.99), "us");
  report.add("  rate", where, static_cast<double>(of.keys) / mean / 1e9, "G keys/s");
}

/// Measures look-ups by four threads in a store in memory.
void time_memory(int64_t rows, int64_t keys_each, Report& report) {
  const CacheCase of{"memory", rows, 16, keys_each, 1.05, 1};
  Store store{StoreOptions{}};
  load(store, of);
  const StoreView view = store.view("m");
  std::vector<double> all;
  std::mutex lock;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<int64_t> keys;
      std::vector<float> to(static_cast<size_t>(keys_each * of.dim));
      std::vector<double> seconds;
      for (int i = 0; i < 500; ++i) {
        keys.clear();
        for (int64_t k = 0; k < keys_each; ++k)
          keys.push_back(
              key_by_rank(drawn_rank(of, static_cast<uint64_t>((t * 500 + i)) << 32 | static_cast<uint64_t>(k)), rows));
        const auto begin = Clock::now();
        view.get(0, keys, to.data());
        seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      }
      const std::lock_guard guard(lock);
      all.insert(all.end(), seconds.begin(), seconds.end());
    });
  threads.clear();
  report.add("memory of the store, 4 threads", cat(keys_each, " keys each, dim 16, ", rows, " rows"), 1e6 * median(all),
             "us");
}

}  // namespace

void bench_cache(Device device, bool quick, const std::string& only, Report& report) {
  Runtime runtime(device, {.threads = 1});
  Context ctx(runtime, runtime.compute_stream());
  using Rows = StoreCacheOptions::Rows;
  std::vector<CacheCase> cases = {
      {"few keys", 630'000, 16, 2000, 1.2, 0.02},
      {"few keys, whole", 630'000, 16, 2000, 1.2, 1},
      {"pooled, whole", 8'000'000, 128, 10'485'760, 1.05, 1, 1024, true},
      {"pooled, whole, f16", 8'000'000, 128, 10'485'760, 1.05, 1, 1024, true, Rows::f16},
      {"pooled, whole, int8", 8'000'000, 128, 10'485'760, 1.05, 1, 1024, true, Rows::int8},
      {"one whole vector per key", 8'000'000, 128, 1'048'576, 1.05, 1, 1, true},
      {"a tenth", 8'000'000, 128, 262'144, 1.05, 0.1, 1, true},
  };
  std::optional<Store> store;  // keeps its rows until a case has another shape
  int64_t rows = 0, dim = 0;
  for (CacheCase& one : cases) {
    if (quick)
      one.rows = 5000, one.keys = std::min<int64_t>(one.keys, 2048),
      one.keys_of_bag = std::min<int64_t>(one.keys_of_bag, 16);
    if (one.name.find(only) == std::string::npos) continue;
    if (one.rows != rows || one.dim != dim) {
      rows = one.rows, dim = one.dim;
      load(store.emplace(StoreOptions{}), one);
    }
    time_case(ctx, *store, one, quick, report);
  }
  if (std::string("memory").find(only) != std::string::npos) time_memory(quick ? 5000 : 4'000'000, 500, report);
}

}  // namespace hctr::bench
