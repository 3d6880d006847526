#include "ops/embedding/listed_vectors.h"

#include <cstring>

namespace hctr::ops {

void copy_listed(Context& ctx, ListedVectors from, ListedVectors to, int64_t count, int64_t bytes) {
  if (count > 0) HCTR_ON_DEVICE(ctx, copy_listed(ctx, from, to, count, bytes));
}

void cpu::copy_listed(Context& ctx, ListedVectors from, ListedVectors to, int64_t count, int64_t bytes) {
  ctx.threads().parallel_for(count, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to.at(i, bytes), from.at(i, bytes), static_cast<size_t>(bytes));
  });
}

}  // namespace hctr::ops
