#include "ops/gemm/fused_lanes.h"

#include <cmath>

namespace hctr::ops {
namespace {

constexpr int64_t kPlainColumns = 16;

template <int64_t kColumns>
void add_one_by_one(const LaneOperands& of, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      const float* const b = of.b + j / kPlainColumns * of.b_panel + j % kPlainColumns;
      float& c = of.c[i * of.c_row + j];
      float sum = of.first ? 0 : c;
      for (int64_t k = 0; k < of.depth; ++k) sum = std::fma(of.a[i * of.a_row + k * of.a_column], b[k * of.b_row], sum);
      c = sum;
    }
}

constexpr FusedLanes kPlainLanes{.rows = 4,
                                 .columns = kPlainColumns,
                                 .add_products = add_one_by_one<kPlainColumns>,
                                 .wide_columns = 64,
                                 .add_wide = [](const LaneOperands& of, int64_t rows, int64_t columns) {
                                   columns == 64   ? add_one_by_one<64>(of, rows)
                                   : columns == 32 ? add_one_by_one<32>(of, rows)
                                                   : add_one_by_one<16>(of, rows);
                                 }};

}  // namespace

const FusedLanes& fused_lanes() {
  const FusedLanes* const lanes = vector_lanes();
  return lanes ? *lanes : kPlainLanes;
}

}  // namespace hctr::ops
