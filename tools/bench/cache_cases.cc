#include "cache_cases.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "core/device/copy_bytes.h"
#include "store/device_cache.h"

namespace hctr::bench {
namespace {

using Clock = std::chrono::steady_clock;

size_t bytes_of_vectors(const CacheCase& of) {
  return static_cast<size_t>(of.keys / of.keys_of_bag * of.dim) * sizeof(float);
}

}  // namespace

int64_t key_by_rank(int64_t rank, int64_t rows) {
  return static_cast<int64_t>(mix64(static_cast<uint64_t>(rank % rows)) >> 1);
}

/// Draws from a continuous power law by the inverse of its distribution function, and rounds down.
int64_t drawn_rank(const CacheCase& of, uint64_t number) {
  const double u = static_cast<double>(mix64(number) >> 11) * 0x1p-53, most = static_cast<double>(of.rows);
  const double a = 1 - of.alpha;
  return std::clamp<int64_t>(static_cast<int64_t>(std::pow((std::pow(most + 1, a) - 1) * u + 1, 1 / a) - 1), 0,
                             of.rows - 1);
}

void load(Store& store, const CacheCase& of) {
  const auto pass_rows = [&](const StoreRowSink& sink) {
    constexpr int64_t kRowsAtOnce = 65536, kRowsOfTask = 256;
    ThreadPool threads(usable_cores());
    std::vector<int64_t> keys;
    std::vector<float> rows(static_cast<size_t>(kRowsAtOnce * of.dim));
    for (int64_t first = 0; first < of.rows; first += kRowsAtOnce) {
      keys.resize(static_cast<size_t>(std::min(kRowsAtOnce, of.rows - first)));
      threads.parallel_for(std::ssize(keys), kRowsOfTask, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          keys[static_cast<size_t>(i)] = key_by_rank(first + i, of.rows);
          std::fill_n(rows.begin() + i * of.dim, of.dim, static_cast<float>((first + i) % 1000));
        }
      });
      sink({}, keys, std::span(rows).first(keys.size() * static_cast<size_t>(of.dim)));
    }
  };
  store.load(
      {.name = "m", .version = "1", .tables = {{.name = "t", .dim = of.dim, .rows = pass_rows, .expected = of.rows}}});
}

Requests::Requests(StreamRef stream, const CacheCase& of, int sets, int first)
    : of_(of), keys_(static_cast<size_t>(sets)), vectors_(stream.device, bytes_of_vectors(of)) {
  std::atomic<size_t> next{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < std::min(usable_cores(), sets); ++t)
    threads.emplace_back([&] {
      for (size_t s = next++; s < keys_.size(); s = next++) {
        const uint64_t set = static_cast<uint64_t>(first) + s;
        for (int64_t i = 0; i < of.keys; ++i)
          keys_[s].push_back(key_by_rank(drawn_rank(of, set << 32 | static_cast<uint64_t>(i)), of.rows));
      }
    });
  threads.clear();
  const auto send = [&](const std::vector<int64_t>& numbers) {
    there_.emplace_back(stream.device, std::max<size_t>(1, numbers.size()) * sizeof(int64_t));
    copy_bytes(stream, there_.back().data(), numbers.data(), numbers.size() * sizeof(int64_t));
    stream.synchronize();
  };
  if (of.keys_of_bag > 1)
    for (int64_t at = 0; at <= of.keys; at += of.keys_of_bag) offsets_.push_back(at);
  if (!of.keys_there) return;
  send(offsets_);
  for (const std::vector<int64_t>& keys : keys_) send(keys);
}

StoreCache::Part Requests::part(int i) const {
  const auto set = static_cast<size_t>(i) % keys_.size();
  auto* const vectors = reinterpret_cast<float*>(vectors_.data());
  StoreCache::Part one{.keys = keys_[set], .offsets = offsets_, .vectors = vectors};
  if (!of_.keys_there) return one;
  one.keys = {reinterpret_cast<const int64_t*>(there_[1 + set].data()), keys_[set].size()};
  if (!offsets_.empty()) one.offsets = {reinterpret_cast<const int64_t*>(there_[0].data()), offsets_.size()};
  one.keys_on_gpu = true;
  return one;
}

double ask(StoreCache& cache, const Requests& requests, int i, StreamRef stream, double* returned) {
  const StoreCache::Part one = requests.part(i);
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  cache.lookup({&one, 1}, stream.handle);
  if (returned) *returned = seconds();
  stream.synchronize();
  return seconds();
}

StoreCacheOptions options_of(const CacheCase& of) {
  StoreCacheOptions options{.rows = of.type};
  if (of.share >= 1) {
    options.share = 1;
    return options;
  }
  const auto rows = static_cast<int64_t>(of.share * static_cast<double>(of.rows));
  const CachePoolOptions pool{.dim = static_cast<int32_t>(of.dim), .rows = std::max<int64_t>(1024, rows)};
  options.bytes = DeviceCache::bytes_of(pool, 16384) + (1 << 20);
  return options;
}

std::string shape_of(const CacheCase& of) {
  return cat(of.name, ": ", of.keys, " keys, dim ", of.dim, ", ", of.rows, " rows",
             of.keys_there ? ", keys there" : "");
}

}  // namespace hctr::bench
