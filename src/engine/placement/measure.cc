#include "engine/placement/measure.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <sstream>
#include <vector>

#include "core/device/arena.h"
#include "core/device/copy_bytes.h"
#include "core/device/program.h"
#include "ops/embedding/embedding_rows.h"

namespace hctr {
namespace {

/// Sizes of the timed transfers. Time is measured on the host, so large transfers must take much longer than a launch.
struct Sizes {
  int64_t small, large;  // elements sent to each rank, in the small and in the large transfer
  int64_t rows;
};
constexpr Sizes kOnCpu{256, int64_t{1} << 18, int64_t{1} << 15}, kOnGpu{256, int64_t{1} << 25, int64_t{1} << 23};
constexpr int64_t kDim = 32;
constexpr int kTurns = 3, kInARow = 16;

/// Limits `large` so that the receive buffer of a rank can hold the data of all ranks.
Sizes sizes_for(Device device, int64_t ranks = 1) {
  Sizes sizes = device.is_cuda() ? kOnGpu : kOnCpu;
  sizes.large = std::min(sizes.large, std::max(sizes.small * 2, (int64_t{1} << 27) / ranks));
  return sizes;
}

/// Returns the seconds of one call: times `in_a_row` sequential calls a few times and uses the minimum. The calls are
/// recorded, as in training, so the result excludes the host's overhead per call.
template <class Body>
double time_of(Context& ctx, int in_a_row, const Body& body) {
  Program program(ctx.stream(), ctx.device().is_cuda(), [&] {
    for (int i = 0; i < in_a_row; ++i) body();
  });
  double best = 1e300;
  for (int turn = 0; turn < kTurns; ++turn) {
    ctx.stream().synchronize();
    const auto begin = std::chrono::steady_clock::now();
    program.run();
    ctx.stream().synchronize();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best / in_a_row;
}

/// The bandwidth of a transfer that took `whole` seconds in total, of which `start` seconds are latency. Divides by at
/// least half of `whole`, so that noise cannot yield an infinite bandwidth.
double bytes_a_second(double bytes, double whole, double start) { return bytes / std::max(whole - start, whole / 2); }
double to_power_of_two(double value) { return std::exp2(std::round(std::log2(value))); }

void measure_links(Context& ctx, Communicator& comm, MachineSpeeds& speeds) {
  const int64_t ranks = comm.size();
  const auto [small, large, rows] = sizes_for(ctx.device(), ranks);
  Arena arena;
  const size_t in = arena.add(TensorSpec(DType::f32, {ranks * large})),
               out = arena.add(TensorSpec(DType::f32, {ranks * large}));
  arena.build(ctx.device());
  const auto first = [&](size_t ticket, int64_t elements) {
    return Tensor(arena.get(ticket).bytes(), TensorSpec(DType::f32, {elements}), ctx.device());
  };
  const auto exchange = [&](int64_t elements, int in_a_row) {
    const RankRanges parts = RankRanges::equal(comm.size(), elements);
    return time_of(ctx, in_a_row, [&] {
      comm.all_to_all(ctx, first(in, ranks * elements), parts, first(out, ranks * elements), parts);
    });
  };
  const auto sum = [&](int64_t elements, int in_a_row) {
    return time_of(ctx, in_a_row, [&] { comm.all_reduce(ctx, first(in, elements), Reduce::sum); });
  };
  const double bytes = static_cast<double>(large - small) * sizeof(float);
  speeds.link_seconds = exchange(small, kInARow);
  speeds.link = bytes_a_second(bytes * static_cast<double>(ranks - 1), exchange(large, 1), speeds.link_seconds);
  speeds.sums_seconds = sum(small, kInARow);
  speeds.sums = bytes_a_second(bytes, sum(large, 1), speeds.sums_seconds);
}

double measure_rows(Context& ctx) {
  const int64_t count = sizes_for(ctx.device()).rows;
  Arena arena;
  const size_t table = arena.add(TensorSpec(DType::f32, {count, kDim})),
               numbers = arena.add(TensorSpec(DType::i32, {count})),
               gathered = arena.add(TensorSpec(DType::f32, {count, kDim}));
  arena.build(ctx.device());
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(static_cast<int32_t>(static_cast<uint64_t>(i) * 2654435761u %
                                        // multiplicative hash with an odd factor, so that every row occurs once
                                        static_cast<uint64_t>(count)));
  from_host(ctx.stream(), arena.get(numbers), rows);
  const ops::RowMemory memory{arena.get(table).bytes(), DType::f32};
  ops::scatter_rows(ctx, arena.get(numbers).data<const int32_t>(), arena.get(gathered),
                    memory);  // write first, because unwritten pages may all map to one physical page
  const auto gather = [&] {
    ops::gather_rows(ctx, arena.get(numbers).data<const int32_t>(), memory, arena.get(gathered));
  };
  return bytes_a_second(static_cast<double>(count * kDim) * sizeof(float), time_of(ctx, 1, gather), 0);
}

}  // namespace

MachineSpeeds measure_speeds(Runtime& runtime, Communicator& comm) {
  Context ctx(runtime, runtime.compute_stream());
  MachineSpeeds mine;
  const int64_t free = free_memory(runtime.device());
  mine.memory = runtime.device().is_cuda() ? free : free / comm.size();
  comm.barrier();  // all ranks start measuring together
  measure_links(ctx, comm, mine);
  mine.rows = measure_rows(ctx);
  MachineSpeeds slowest = mine;
  const std::string told =
      cat(mine.link, " ", mine.link_seconds, " ", mine.sums, " ", mine.sums_seconds, " ", mine.rows, " ", mine.memory);
  using Number = double MachineSpeeds::*;
  const auto speeds = {&MachineSpeeds::link, &MachineSpeeds::sums, &MachineSpeeds::rows},
             times = {&MachineSpeeds::link_seconds, &MachineSpeeds::sums_seconds};
  for (const std::string& text : comm.gather(told, 0)) {
    std::istringstream words(text);
    MachineSpeeds other;
    words >> other.link >> other.link_seconds >> other.sums >> other.sums_seconds >> other.rows >> other.memory;
    for (const Number speed : speeds) slowest.*speed = std::min(slowest.*speed, other.*speed);
    for (const Number seconds : times) slowest.*seconds = std::max(slowest.*seconds, other.*seconds);
    slowest.memory = std::min(slowest.memory, other.memory);
  }
  for (const auto& numbers : {speeds, times})
    for (const Number number : numbers) slowest.*number = to_power_of_two(slowest.*number);
  slowest.memory = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(slowest.memory, 1))));
  return slowest;
}

}  // namespace hctr
