#include "ceilings.h"

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/embedding/embedding_rows.h"
#include "timing.h"

namespace hctr::bench {

Ceilings measure_ceilings(Context& ctx, size_t table_bytes, Report& report) {
  Ceilings ceilings;
  const Buffer table(ctx.device(), table_bytes), to(ctx.device(), table_bytes / 2);
  const double seconds = seconds_each(
      ctx, 2, 7, [&](int i) { copy_bytes(ctx.stream(), to.data(), table.data() + (i % 2) * to.bytes(), to.bytes()); });
  ceilings.copy_bytes = 2 * static_cast<double>(to.bytes()) / seconds;
  report.add("device copy, read + written", cat(to.bytes() >> 20, " MiB"), ceilings.copy_bytes / 1e12, "TB/s");

  for (const int64_t dim : {4, 8, 16, 32, 64, 128}) {
    const int64_t rows = static_cast<int64_t>(table_bytes) / (dim * 4),
                  count = std::min<int64_t>(rows / 2, (int64_t{1} << 27) / dim);
    std::vector<int32_t> picked(static_cast<size_t>(count));
    ctx.threads().parallel_for(count, 1 << 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        picked[static_cast<size_t>(i)] =
            static_cast<int32_t>(mix64(static_cast<uint64_t>(i * 131 + dim)) % static_cast<uint64_t>(rows));
    });
    const Buffer numbers(ctx.device(), picked.size() * sizeof(int32_t));
    copy_bytes(ctx.stream(), numbers.data(), picked.data(), numbers.bytes());
    const Tensor x(to.data(), TensorSpec(DType::f32, {count, dim}), ctx.device());
    const double each = seconds_each(ctx, 1, 7, [&](int) {
      ops::gather_rows(ctx, reinterpret_cast<const int32_t*>(numbers.data()), {table.data(), DType::f32}, x);
    });
    ceilings.gather_rows[dim] = static_cast<double>(count) / each;
    report.add("random row gather, fp32", cat("dim ", dim), ceilings.gather_rows[dim] / 1e9, "G rows/s");
  }
  return ceilings;
}

}  // namespace hctr::bench
