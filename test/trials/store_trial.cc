// Long-running trials of the store. This is no test program; build the target store_trial.
//
//   store_trial random OPERATIONS FOLDER            compares random operations with plain maps, for each set of tiers
//   store_trial soak SECONDS THREADS PAUSE FOLDER   clients send requests of random sizes, with pauses of up to PAUSE
//                                                   milliseconds, during updates and changes of versions
//   store_trial soak SECONDS THREADS PAUSE FOLDER cache   the same through a GPU cache of a tenth of the rows
//
// Exit code 1: a result was wrong.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/device/stream.h"
#include "hctr/store.h"
#include "hctr/store_cache.h"
#include "support/store_model.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<StoreLevelOptions> trial_levels(const std::string& which, const fs::path& folder) {
  const StoreLevelOptions file{.kind = StoreLevelOptions::Kind::file, .folder = folder / which};
  if (which == "memory") return {StoreLevelOptions{}};
  if (which == "file") return {file};
  return {StoreLevelOptions{.most_rows = which == "cache" ? 2000 : 0}, file};
}

/// Other threads look up rows concurrently, so that lookups overlap evictions, updates and swaps of versions.
int random_operations(int64_t operations, const fs::path& folder) {
  int64_t wrong = 0;
  for (const char* which : {"memory", "file", "both", "cache"}) {
    fs::remove_all(folder / which);
    const auto start = Clock::now();
    Store store({.levels = trial_levels(which, folder)});
    StoreOperations all(store, 1, 20000, std::string(which) != "memory");
    std::atomic<bool> done{false};
    std::atomic<int64_t> torn{0}, looked_up{0};
    const auto read = [&](uint64_t seed) {
      std::mt19937_64 random(seed);
      std::vector<int64_t> keys(200);
      std::vector<float> rows(keys.size() * 8), wanted(8);
      std::vector<uint8_t> found(keys.size());
      while (!done) {
        for (int64_t& key : keys) key = static_cast<int64_t>(random() % 20000) - 6666;
        store.view("m").get(0, keys, rows.data(), 0, found.data());
        for (size_t i = 0; i < keys.size(); ++i) {
          if (!found[i]) continue;
          StampedTable::row(keys[i], static_cast<uint32_t>(rows[8 * i] / 1e6f), wanted);
          torn += !std::equal(wanted.begin(), wanted.end(), rows.begin() + static_cast<ptrdiff_t>(8 * i));
        }
        looked_up += 200;
      }
    };
    std::thread readers[2] = {std::thread(read, 2), std::thread(read, 3)};
    while (all.operations() < operations) all.step();
    done = true;
    for (std::thread& reader : readers) reader.join();
    std::printf("%-6s %lld operations, %lld wrong; %lld keys of other threads, %lld rows torn; %.0f s\n", which,
                static_cast<long long>(all.operations()), static_cast<long long>(all.wrong()),
                static_cast<long long>(looked_up.load()), static_cast<long long>(torn.load()), seconds_since(start));
    std::fflush(stdout);
    wrong += all.wrong() + torn;
  }
  return wrong == 0 ? 0 : 1;
}

int64_t resident_kib() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

/// A histogram of times with logarithmic bins, each 10 % wider than the previous one.
class Times {
 public:
  void add(double seconds) {
    const double at = std::log(std::max(seconds, 1e-7) / 1e-7) / std::log(1.1);
    counts_[std::min(counts_.size() - 1, static_cast<size_t>(at))].fetch_add(1, std::memory_order_relaxed);
  }
  double quantile(double share) const {
    const int64_t all = count();
    int64_t below = 0;
    for (size_t i = 0; i < counts_.size(); ++i)
      if ((below += counts_[i]) >= static_cast<int64_t>(share * static_cast<double>(all)))
        return 1e-7 * std::pow(1.1, static_cast<double>(i + 1));
    return 0;
  }
  int64_t count() const {
    int64_t all = 0;
    for (const auto& one : counts_) all += one;
    return all;
  }

 private:
  std::array<std::atomic<int64_t>, 256> counts_{};
};

/// A version whose rows all contain `number`. Updates change keys 0 and 1 together, and 998 other keys.
StoreModel soak_version(int64_t number) {
  return {.name = "m",
          .version = std::to_string(number),
          .iteration = 0,
          .tables = {{.name = "t", .dim = 16, .rows = [](const StoreRowSink& sink) {
                        std::vector<int64_t> keys(1000);
                        const std::vector<float> rows(16 * keys.size(), 1);
                        for (int64_t first = 0; first < 200'000; first += 1000) {
                          std::iota(keys.begin(), keys.end(), first);
                          sink({}, keys, rows);
                        }
                      }}}};
}

/// Looks up rows in the store, or through a cache in GPU memory.
class SoakReader {
 public:
  SoakReader(Store& store, StoreCache* cache) : store_(store), cache_(cache) {
    if (cache && cache->gpu() >= 0) stream_.emplace(Device{DeviceKind::cuda, cache->gpu()});
  }
  /// Returns the number of keys without a row.
  int64_t get(const std::vector<int64_t>& keys, std::vector<float>& rows) {
    if (!cache_) return store_.view("m").get(0, keys, rows.data());
    const StoreCache::Part part{.keys = keys, .vectors = rows.data(), .vectors_on_host = true};
    return cache_->lookup({&part, 1}, stream_ ? stream_->ref().handle : nullptr).defaults;
  }

 private:
  Store& store_;
  StoreCache* cache_;
  std::optional<Stream> stream_;
};

int soak(double seconds, int threads, uint64_t pause, const fs::path& folder, bool through_cache) {
  fs::remove_all(folder / "soak");
  Store store({.levels = {StoreLevelOptions{.most_rows = 100'000},
                          {.kind = StoreLevelOptions::Kind::file, .folder = folder / "soak"}}});
  store.load(soak_version(0));
  std::optional<StoreCache> cache;
  if (through_cache) {
    cache.emplace(store, "m", StoreCacheOptions{.gpu = StoreCacheOptions::kGpuIfAny, .share = 0.1});
    std::printf("%s\n", cache->gpu() >= 0 ? "cache in GPU memory" : "no GPU: the levels answer");
  }
  std::atomic<bool> done{false};
  std::atomic<int64_t> errors{0}, torn{0}, mixed{0}, keys_asked{0};
  Times times;
  const auto client = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    SoakReader reader(store, cache ? &*cache : nullptr);
    std::vector<int64_t> keys;
    std::vector<float> rows;
    while (!done) {
      keys.resize(random() % 10'001);
      for (int64_t& key : keys) key = static_cast<int64_t>(random() % 200'000);
      if (keys.size() > 1) keys.front() = 0, keys.back() = 1;
      rows.resize(16 * keys.size());
      const auto start = Clock::now();
      try {
        errors += reader.get(keys, rows) != 0;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ++errors;
      }
      times.add(seconds_since(start));
      for (size_t i = 0; i < rows.size(); ++i) torn += rows[i] != rows[i / 16 * 16];
      if (keys.size() > 1) mixed += rows[0] != rows[rows.size() - 1];
      keys_asked += static_cast<int64_t>(keys.size());
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % pause));
    }
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < threads; ++i) clients.emplace_back(client, static_cast<uint64_t>(i));
  const auto start = Clock::now();
  std::mt19937_64 random(7);
  int64_t version = 0, iteration = 0, updates = 0, early = 0;
  std::vector<int64_t> keys(1000);
  while (seconds_since(start) < seconds) {
    if (++updates % 50 == 0) {
      store.load(soak_version(++version));
      if (cache)
        cache->activate(std::to_string(version));
      else
        store.activate("m", std::to_string(version));
      store.unload("m", std::to_string(version - 1));
      store.compact();
      iteration = 0;
      std::printf("%.0f s: %lld requests, p50 %.3f ms, p99 %.3f ms, %lld MiB\n", seconds_since(start),
                  static_cast<long long>(times.count()), 1e3 * times.quantile(0.5), 1e3 * times.quantile(0.99),
                  static_cast<long long>(resident_kib() / 1024));
      std::fflush(stdout);
    }
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % 200'000);
    keys[0] = 0, keys[1] = 1;
    const std::vector<float> rows(16 * keys.size(), static_cast<float>(updates));
    const StoreTableUpdate update{.table = "t", .keys = keys, .rows = rows.data()};
    errors += !store.apply("m", ++iteration, {&update, 1});
    if (early == 0 && seconds_since(start) > seconds / 5) early = resident_kib();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  done = true;
  for (std::thread& one : clients) one.join();
  std::printf(
      "%d threads, %.0f s: %lld requests of %lld keys, %lld updates, %lld versions; errors %lld, rows torn %lld, "
      "answers mixed %lld; p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms; memory after a fifth %lld MiB, at the end "
      "%lld MiB\n",
      threads, seconds_since(start), static_cast<long long>(times.count()), static_cast<long long>(keys_asked.load()),
      static_cast<long long>(updates), static_cast<long long>(version + 1), static_cast<long long>(errors.load()),
      static_cast<long long>(torn.load()), static_cast<long long>(mixed.load()), 1e3 * times.quantile(0.5),
      1e3 * times.quantile(0.99), 1e3 * times.quantile(0.999), static_cast<long long>(early / 1024),
      static_cast<long long>(resident_kib() / 1024));
  return errors + torn + mixed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hctr::test

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "random") return hctr::test::random_operations(std::stoll(words[1]), words[2]);
  if (words.size() == 5 && words[0] == "soak")
    return hctr::test::soak(std::stod(words[1]), std::stoi(words[2]), std::stoull(words[3]) + 1, words[4], false);
  if (words.size() == 6 && words[0] == "soak" && words[5] == "cache")
    return hctr::test::soak(std::stod(words[1]), std::stoi(words[2]), std::stoull(words[3]) + 1, words[4], true);
  std::fprintf(stderr, "store_trial random OPERATIONS FOLDER | soak SECONDS THREADS PAUSE FOLDER [cache]\n");
  return 2;
}
