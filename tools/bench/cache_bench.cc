#include "cache_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "cache_cases.h"
#include "cache_copies.h"
#include "core/base/expect.h"
#include "core/device/buffer.h"
#include "core/device/current_device.h"
#include "hctr/store.h"
#include "store/bound_version.h"
#include "timing.h"

namespace hctr::bench {
namespace {

using Clock = std::chrono::steady_clock;

double of_sorted(const std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

/// Repeats requests until the hit rate no longer rises. Returns the next request.
int warm_up(StreamRef stream, StoreCache& cache, const Requests& requests, int at_least) {
  constexpr int kMost = 4000, kRound = 50;
  constexpr double kRise = 0.002;
  double before = 0;
  for (int i = 0;;) {
    const StoreCacheStatistics begin = cache.statistics();
    for (const int end = i + kRound; i < end; ++i) ask(cache, requests, i, stream);
    const StoreCacheStatistics end = cache.statistics();
    const double hits =
        1 - static_cast<double>(end.misses - begin.misses) / static_cast<double>(end.asked - begin.asked);
    if ((i >= at_least && hits - before < kRise) || i >= kMost) return i;
    before = hits;
  }
}

void time_case(StreamRef stream, StoreCache& cache, const CacheCase& of, bool quick, Report& report) {
  const int times = quick ? 5 : of.keys > 100'000 ? 50 : 3000;
  // If the cache is partial, each timed request has new keys. Otherwise the cache would soon contain the keys of all
  // requests.
  const int before_timing = quick ? 3 : of.share < 1 ? std::max(times, static_cast<int>(of.rows / 250'000)) : 12;
  const Requests requests(stream, of, of.share < 1 ? before_timing + times : std::min(4, times));
  int next = 0;
  const std::string where = shape_of(of);
  const auto begin = Clock::now();
  if (of.share < 1 && !quick) {
    const Requests others(stream, of, before_timing, 1 << 24);  // the timed requests have other keys
    report.add("requests before timing", where, warm_up(stream, cache, others, before_timing), "");
    report.add("  in", where, std::chrono::duration<double>(Clock::now() - begin).count(), "s");
  }
  for (; next < before_timing; ++next) ask(cache, requests, next, stream);
  const StoreCacheStatistics before = cache.statistics();
  std::vector<double> seconds, returned(static_cast<size_t>(times));
  for (int i = 0; i < times; ++i)
    seconds.push_back(ask(cache, requests, next + i, stream, &returned[static_cast<size_t>(i)]));
  const StoreCacheStatistics after = cache.statistics();
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / times;
  std::sort(seconds.begin(), seconds.end());
  std::sort(returned.begin(), returned.end());
  report.add(
      "hit rate", where,
      100 - 100.0 * static_cast<double>(after.misses - before.misses) / static_cast<double>(after.asked - before.asked),
      "%");
  report.add("  request, mean", where, 1e6 * mean, "us");
  report.add("  median", where, 1e6 * of_sorted(seconds, 0.5), "us");
  report.add("  99 of 100", where, 1e6 * of_sorted(seconds, 0.99), "us");
  report.add("  call returns, median", where, 1e6 * of_sorted(returned, 0.5), "us");
  report.add("  call returns, 99 of 100", where, 1e6 * of_sorted(returned, 0.99), "us");
  report.add("  rate", where, static_cast<double>(of.keys) / mean / 1e9, "G keys/s");
}

/// Measures look-ups before and during an update of `count` rows.
void time_update(StreamRef stream, Store& store, StoreCache& cache, const CacheCase& of, int64_t count,
                 Report& report) {
  const Requests requests(stream, of, 4);
  std::vector<int64_t> keys;
  for (int64_t r = 0; r < std::min(count, of.rows); ++r) keys.push_back(key_by_rank(r, of.rows));
  const std::vector<float> rows(keys.size() * static_cast<size_t>(of.dim), 0.5f);
  const StoreTableUpdate update{.table = "t", .keys = keys, .rows = rows.data()};
  const auto sorted_while = [&](const std::function<bool(size_t)>& runs) {
    std::vector<double> seconds;
    do seconds.push_back(ask(cache, requests, static_cast<int>(seconds.size()), stream));
    while (runs(seconds.size()));
    std::sort(seconds.begin(), seconds.end());
    return seconds;
  };
  const std::vector<double> before = sorted_while([](size_t asked) { return asked < 3000; });
  const StoreCacheStatistics counts_before = cache.statistics();
  std::atomic<bool> applied{false};
  double applying = 0;
  std::exception_ptr failure;
  std::jthread updating([&] {
    const auto begin = Clock::now();
    try {
      store.apply("m", 1, {&update, 1});
    } catch (...) {
      failure = std::current_exception();
    }
    applying = std::chrono::duration<double>(Clock::now() - begin).count();
    applied = true;
  });
  const std::vector<double> during = sorted_while([&](size_t) { return !applied; });
  updating.join();
  if (failure) std::rethrow_exception(failure);
  const StoreCacheStatistics counts = cache.statistics();
  const std::string where = cat(shape_of(of), ", ", keys.size(), " rows updated");
  report.add("99 of 100, no update", where, 1e6 * of_sorted(before, 0.99), "us");
  report.add("  longest", where, 1e6 * before.back(), "us");
  report.add("  99 of 100, during the update", where, 1e6 * of_sorted(during, 0.99), "us");
  report.add("  ratio", where, of_sorted(during, 0.99) / of_sorted(before, 0.99), "");
  report.add("  999 of 1000, during the update", where, 1e6 * of_sorted(during, 0.999), "us");
  report.add("  longest, during the update", where, 1e6 * during.back(), "us");
  report.add("  update applied in", where, applying, "s");
  report.add("  repeated look-ups", where, static_cast<double>(counts.repeated - counts_before.repeated), "");
  report.add("  look-ups of the store alone", where, static_cast<double>(counts.bypassed - counts_before.bypassed), "");
}

/// Measures an update of `count` rows of a store without a cache.
void time_update_alone(Store& store, const CacheCase& of, int64_t count, Report& report) {
  std::vector<int64_t> keys;
  for (int64_t r = 0; r < std::min(count, of.rows); ++r) keys.push_back(key_by_rank(r, of.rows));
  const std::vector<float> rows(keys.size() * static_cast<size_t>(of.dim), 0.5f);
  const StoreTableUpdate update{.table = "t", .keys = keys, .rows = rows.data()};
  const auto begin = Clock::now();
  store.apply("m", 2, {&update, 1});
  report.add("  update applied without a cache in", cat(shape_of(of), ", ", keys.size(), " rows updated"),
             std::chrono::duration<double>(Clock::now() - begin).count(), "s");
}

/// Times the parts of a look-up of few keys, all of which are in the cache.
void time_call(StreamRef stream, bool quick, Report& report) {
  const CacheCase of{"call", quick ? 5000 : 630'000, 16, 2000, 1.2, 1};
  DeviceCache cache({.device = stream.device}, {.rows = [](auto...) {}});
  const int32_t space =
      cache.add_space(cache.add_pool({.dim = static_cast<int32_t>(of.dim), .rows = of.rows, .whole = true}), 0);
  std::vector<int64_t> keys;
  for (int64_t r = 0; r < of.rows; ++r) keys.push_back(key_by_rank(r, of.rows));
  const std::vector<float> rows(keys.size() * static_cast<size_t>(of.dim), 0.5f);
  cache.replace(space, keys, rows.data());
  const Requests requests(stream, of, 4);
  Runtime runtime(stream.device, {.threads = 1});
  Context ctx(runtime, stream);
  const Buffer state(stream.device, sizeof(ops::CacheState));
  const auto time = [&](const char* name, const std::function<void(int)>& work) {
    std::vector<double> seconds;
    for (int i = 0; i < (quick ? 10 : 3000); ++i) {
      const auto begin = Clock::now();
      work(i);
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      stream.synchronize();
    }
    report.add(name, shape_of(of), 1e6 * median(seconds), "us");
  };
  const auto launch_one = [&] { ops::cache_set_era(ctx, reinterpret_cast<ops::CacheState*>(state.data()), 1); };
  time("make the GPU current", [&](int) { const CurrentDevice current(stream.device); });
  time("launch a kernel", [&](int) { launch_one(); });
  time("launch a kernel and wait", [&](int) { launch_one(), stream.synchronize(); });
  time("look-up in the device cache", [&](int i) {
    const StoreCache::Part part = requests.part(i);
    const CacheRequest request{.space = space, .keys = part.keys, .vectors = part.vectors};
    cache.lookup({&request, 1}, stream, CacheMisses::answered);
  });
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

/// Whether `name` contains one of the words. '|' separates the words.
bool is_chosen(const std::string& name, const std::string& words) {
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = words.find('|', begin);
    if (name.find(words.substr(begin, end - begin)) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void bench_cache(Device device, bool quick, const std::string& only, int64_t rows, Report& report) {
  Runtime runtime(device, {.threads = 1});
  const StreamRef stream = runtime.compute_stream();
  using Rows = StoreCacheOptions::Rows;
  // Cases with the same rows and the same cache follow each other.
  std::vector<CacheCase> cases = {
      {"few keys", 630'000, 16, 2000, 1.2, 0.006},
      {"few keys, whole", 630'000, 16, 2000, 1.2, 1},
      {"pooled, whole", rows, 128, 10'485'760, 1.05, 1, 1024, true},
      {"one whole vector per key", rows, 128, 1'048'576, 1.05, 1, 1, true},
      {"during an update", rows, 128, 2000, 1.05, 1},
      {"pooled, f16", rows, 128, 10'485'760, 1.05, 1, 1024, true, Rows::f16},
      {"pooled, int8", rows, 128, 10'485'760, 1.05, 1, 1024, true, Rows::int8},
      {"a tenth", rows, 128, 262'144, 1.05, 0.1, 1, true},
  };
  std::optional<Store> store;
  std::optional<StoreCache> cache;
  const CacheCase* before = nullptr;
  for (CacheCase& one : cases) {
    if (quick)
      one.rows = 5000, one.keys = std::min<int64_t>(one.keys, 2048),
      one.keys_of_bag = std::min<int64_t>(one.keys_of_bag, 16);
    if (!is_chosen(one.name, only)) continue;
    const bool same_rows = before && one.rows == before->rows && one.dim == before->dim;
    if (!same_rows || one.share != before->share || one.type != before->type) cache.reset();
    const auto begin = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    if (!same_rows) {
      store.reset();
      load(store.emplace(StoreOptions{}), one);
      report.add("store loaded in", cat(one.rows, " rows, dim ", one.dim), seconds(), "s");
    }
    if (!cache) {
      const double loaded = seconds();
      cache.emplace(cache_on(*store, "m", options_of(one), &device));
      report.add("cache filled in", shape_of(one), seconds() - loaded, "s");
    }
    before = &one;
    if (one.name == "during an update") {
      const int64_t count = quick ? 1000 : 1'000'000;
      time_update(stream, *store, *cache, one, count, report);
      cache.reset();
      time_update_alone(*store, one, count, report);
    } else {
      time_case(stream, *cache, one, quick, report);
    }
  }
  cache.reset(), store.reset();
  if (is_chosen("copies", only)) time_copies(device, quick, rows, report);
  if (is_chosen("call", only)) time_call(stream, quick, report);
  if (is_chosen("memory", only)) time_memory(quick ? 5000 : 4'000'000, 500, report);
}

}  // namespace hctr::bench
