#include "train/machine_ceilings.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/base/random.h"
#include "core/device/arena.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/common/copy.h"
#include "ops/gemm/fp8_product.h"
#include "ops/gemm/linear.h"

namespace hctr {
namespace {

/// Seconds per call: the best of `runs` measurements of `in_a_row` consecutive calls each.
template <class Body>
double best_seconds(Context& ctx, int runs, int in_a_row, const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) {
    ctx.stream().synchronize();
    const auto start = Clock::now();
    for (int i = 0; i < in_a_row; ++i) body();
    ctx.stream().synchronize();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count() / in_a_row);
  }
  return best;
}

double copied_bytes_a_second(Context& ctx) {
  constexpr size_t kBytes = size_t{128} << 20, kPiece = size_t{1} << 20;
  const Buffer from(ctx.device(), kBytes), to(ctx.device(), kBytes);
  const bool gpu = ctx.device().is_cuda();
  const double best = best_seconds(ctx, 5, gpu ? 10 : 1, [&] {
    if (gpu) return copy_bytes(ctx.stream(), to.data(), from.data(), kBytes);
    ctx.threads().parallel_for(kBytes / kPiece, 1, [&](int64_t begin, int64_t end) {
      const auto at = static_cast<size_t>(begin) * kPiece, bytes = static_cast<size_t>(end - begin) * kPiece;
      copy_bytes(ctx.stream(), to.data() + at, from.data() + at, bytes);
    });
  });
  return 2 * static_cast<double>(kBytes) / best;
}

/// The width of the square matrices that are measured.
int64_t measured_width(Context& ctx) { return ctx.device().is_cuda() ? 4096 : 2048; }

double product_flops_a_second(Context& ctx, DType dtype) {
  const bool gpu = ctx.device().is_cuda();
  const int64_t n = measured_width(ctx);
  Arena memory, random;
  for (int i = 0; i < 3; ++i) memory.add(TensorSpec(dtype, {n, n}));
  random.add(TensorSpec(DType::f32, {n, n}));
  memory.build(ctx.device());
  random.build(ctx.device());
  std::vector<float> values(static_cast<size_t>(n * n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = symmetric_float(static_cast<uint32_t>(mix64(i)), 1);
  from_host(ctx.stream(), random.get(0), values);
  for (size_t i = 0; i < 2; ++i) ops::copy(ctx, random.get(0), memory.get(i));
  const double best = best_seconds(ctx, 3, gpu ? 10 : 1, [&] {
    ops::matmul(ctx, memory.get(0), ops::Transpose::no, memory.get(1), ops::Transpose::no, memory.get(2));
  });
  return 2 * static_cast<double>(n * n * n) / best;
}

/// The elements encode small numbers. Nonzero values of any kind draw the same power; zeros would draw less.
double fp8_flops_a_second(Context& ctx) {
  const bool gpu = ctx.device().is_cuda();
  const int64_t n = measured_width(ctx);
  const auto elements = static_cast<size_t>(n * n);
  const Buffer a(ctx.device(), elements), b(ctx.device(), elements), scale(ctx.device(), sizeof(ops::Fp8Scale));
  std::vector<uint8_t> codes(elements);
  for (size_t i = 0; i < elements; ++i) codes[i] = static_cast<uint8_t>(mix64(i) % 0x40 | (mix64(i) >> 63 << 7));
  const ops::Fp8Scale one;
  copy_bytes(ctx.stream(), a.data(), codes.data(), elements);
  copy_bytes(ctx.stream(), b.data(), codes.data(), elements);
  copy_bytes(ctx.stream(), scale.data(), &one, sizeof one);
  Arena result;
  result.add(TensorSpec(DType::bf16, {n, n}));
  result.build(ctx.device());
  const auto matrix = [&](const Buffer& of) {
    return ops::Fp8Matrix{of.data(), n, n, ops::Fp8Format::e4m3, reinterpret_cast<const ops::Fp8Scale*>(scale.data())};
  };
  const double best = best_seconds(ctx, gpu ? 3 : 1, gpu ? 10 : 1, [&] {
    ops::fp8_product(ctx, matrix(a), matrix(b), std::nullopt, false, result.get(0));
  });
  return 2 * static_cast<double>(n * n * n) / best;
}

}  // namespace

Ceilings measure_ceilings(Runtime& runtime, DType products, bool fp8) {
  Context ctx(runtime, runtime.compute_stream());
  return {copied_bytes_a_second(ctx), product_flops_a_second(ctx, products), products,
          fp8 ? fp8_flops_a_second(ctx) : 0};
}

}  // namespace hctr
