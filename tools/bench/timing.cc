#include "timing.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "core/device/program.h"

namespace hctr::bench {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds_each(Context& ctx, int warm_up, int times, const std::function<void(int)>& body,
                    const std::function<void(int)>& before) {
  std::vector<double> seconds;
  for (int i = 0; i < warm_up + times; ++i) {
    if (before) before(i);
    ctx.stream().synchronize();
    const auto start = Clock::now();
    body(i);
    ctx.stream().synchronize();
    if (i >= warm_up) seconds.push_back(since(start));
  }
  return median(std::move(seconds));
}

double seconds_in_a_row(Context& ctx, int in_a_row, int times, const std::function<void(int)>& body,
                        const std::function<void(int)>& before) {
  Program row(ctx.stream(), true, [&] {
    for (int i = 0; i < in_a_row; ++i) body(i);
  });
  return seconds_each(ctx, 1, times, [&](int) { row.run(); }, before) / in_a_row;
}

}  // namespace hctr::bench
