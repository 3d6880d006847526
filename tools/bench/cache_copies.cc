#include "cache_copies.h"

#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "cache_cases.h"
#include "core/base/expect.h"
#include "core/device/context.h"
#include "core/device/current_device.h"
#include "store/bound_version.h"

namespace hctr::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// A cache on one device, and the requests to it.
class Copy {
 public:
  Copy(Device device, const Store& store, const CacheCase& of, int sets, int first)
      : runtime_(device, {.threads = 1}),
        cache_(cache_on(store, "m", options_of(of), &device)),
        requests_(runtime_.compute_stream(), of, sets, first) {}

  void ask(int begin, int end) {
    const StreamRef stream = runtime_.compute_stream();
    const CurrentDevice current(stream.device);
    for (int i = begin; i < end; ++i) bench::ask(cache_, requests_, i, stream);
  }
  StoreCacheStatistics statistics() const { return cache_.statistics(); }

 private:
  Runtime runtime_;
  StoreCache cache_;
  Requests requests_;
};

/// Each copy runs its requests [begin, end) in a thread of its own. Returns the seconds until all have ended.
double ask_all(std::span<const std::unique_ptr<Copy>> copies, int begin, int end) {
  const auto start = Clock::now();
  std::vector<std::future<void>> running;
  for (const auto& copy : copies)
    running.push_back(std::async(std::launch::async, [&copy, begin, end] { copy->ask(begin, end); }));
  for (auto& one : running) one.get();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Returns the rate in keys per second.
double time_on(std::span<const Device> devices, const Store& store, const CacheCase& of, bool quick, Report& report) {
  // A cache with half of the rows is full only after many requests, because a row must be missed twice.
  const int times = quick ? 5 : 50, warm_up = quick ? 20 : 400;
  std::vector<std::unique_ptr<Copy>> copies;
  for (const Device device : devices) {
    const CurrentDevice current(device);
    const int first = static_cast<int>(copies.size()) * (warm_up + times);
    copies.push_back(std::make_unique<Copy>(device, store, of, warm_up + times, first));
  }
  ask_all(copies, 0, warm_up);
  std::vector<StoreCacheStatistics> before;
  for (const auto& copy : copies) before.push_back(copy->statistics());
  const double seconds = ask_all(copies, warm_up, warm_up + times);
  double asked = 0, misses = 0;
  for (size_t i = 0; i < copies.size(); ++i) {
    const StoreCacheStatistics after = copies[i]->statistics();
    asked += static_cast<double>(after.asked - before[i].asked);
    misses += static_cast<double>(after.misses - before[i].misses);
  }
  const std::string where = cat(shape_of(of), ", caches: ", copies.size());
  report.add("hit rate", where, 100 - 100 * misses / asked, "%");
  report.add("  rate of all", where, asked / seconds / 1e9, "G keys/s");
  return asked / seconds;
}

}  // namespace

void time_copies(Device device, bool quick, int64_t rows, Report& report) {
  std::vector<Device> devices{device, device};
  if (device.is_cuda()) {
    devices.clear();
    for (int i = 0; i < find_gpus().count; ++i) devices.push_back({DeviceKind::cuda, i});
    if (devices.size() < 2) return;
  }
  CacheCase tenth{"copies, a tenth", quick ? 5000 : rows, 128, quick ? 2048 : 262'144, 1.05, 0.1, 1, true};
  CacheCase half = tenth;
  half.name = "copies, half", half.share = 0.5;
  Store store{StoreOptions{}};
  load(store, tenth);
  const std::span<const Device> all = devices, one = all.first(1);
  time_on(one, store, tenth, quick, report);
  const double together = time_on(all, store, tenth, quick, report), alone = time_on(one, store, half, quick, report);
  report.add("  all GPUs with a tenth, compared with one with half", shape_of(tenth), together / alone, "times");
}

}  // namespace hctr::bench
