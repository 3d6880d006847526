#include "ops/gemm/ordered_product.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "core/base/thread_pool.h"
#include "ops/gemm/fused_lanes.h"
#include "ops/gemm/product_parts.h"

namespace hctr::ops {
namespace {

// depth of a packed panel of `b`; the caches hold one panel and a task's rows of `a`
constexpr int64_t kPanelDepth = 256;
constexpr int64_t kPackedDepth = 1024;  // depth of a step if `b` is a PanelMatrix, whose panels are already packed
constexpr int64_t kTaskRows = 96;       // rows of `a` per task; a task reads these rows again for each panel
constexpr int64_t kRowsWorthPacking = 8;
constexpr int64_t kColumnsWorthInterleaving = 128;  // with fewer columns, copying `a` saves no time
constexpr int64_t kProductsWorthAThread = int64_t{1} << 16;

/// One task: the GEMM of a [rows, columns] part of c.
struct ProductTask {
  StridedMatrix a, b;
  ProductEnd end;
  float* c;
  int64_t c_stride, rows, columns, depth;
  // if not null, read instead of `b`: panels of FusedLanes::columns columns, each with the whole depth
  const float* panels = nullptr;
};

/// Copies kColumns elements of each row of b to a panel of this width.
template <int64_t kColumns>
void pack_rows(StridedMatrix b, int64_t depth, float* panel) {
  for (int64_t k = 0; k < depth; ++k) std::memcpy(panel + k * kColumns, b.data + k * b.row, kColumns * sizeof(float));
}

/// Copies b [depth, columns] to panel [depth, width], with zeros after the columns.
void pack_panel(StridedMatrix b, int64_t depth, int64_t columns, int64_t width, float* panel) {
  if (b.column == 1 && columns == width && width == 32) return pack_rows<32>(b, depth, panel);
  if (b.column == 1 && columns == width && width == 16) return pack_rows<16>(b, depth, panel);
  for (int64_t k = 0; k < depth; ++k, panel += width) {
    const float* from = b.data + k * b.row;
    for (int64_t j = 0; j < columns; ++j) panel[j] = from[j * b.column];
    std::fill(panel + columns, panel + width, 0.0f);
  }
}

/// Copies the columns [k, k + depth) of `a`, block by block of rows, so that the elements that a block reads are
/// contiguous. Without this copy, rows whose distance is a multiple of 4 KiB evict each other from the first-level
/// cache.
void interleave_rows(const FusedLanes& lanes, const ProductTask& task, int64_t k, int64_t depth, float* to) {
  for (int64_t i = 0; i < task.rows;) {
    const int64_t rows = lanes.rows_of_block(task.rows - i);
    const float* const from = task.a.data + i * task.a.row + k * task.a.column;
    for (int64_t c = 0; c < depth; ++c)
      for (int64_t r = 0; r < rows; ++r) *to++ = from[r * task.a.row + c * task.a.column];
    i += rows;
  }
}

void finish_rows(const ProductTask& task) {
  for (int64_t i = 0; i < task.rows; ++i) {
    float* c = task.c + i * task.c_stride;
    if (task.end.addend) {
      const float* addend = task.end.addend + i * task.end.stride;
      for (int64_t j = 0; j < task.columns; ++j) c[j] += addend[j];
    }
    if (task.end.relu)
      for (int64_t j = 0; j < task.columns; ++j) c[j] = c[j] > 0 ? c[j] : 0.0f;
  }
}

/// Operands of the block at (i, j), for depth [k, k + depth). With panels, j is a multiple of their width.
LaneOperands block_of(const FusedLanes& lanes, const ProductTask& task, int64_t i, int64_t j, int64_t k,
                      int64_t depth) {
  const int64_t width = lanes.columns, panel = task.depth * width;
  return {
      .a = task.a.data + i * task.a.row + k * task.a.column,
      .a_row = task.a.row,
      .a_column = task.a.column,
      .b = task.panels ? task.panels + j / width * panel + k * width : task.b.data + k * task.b.row + j * task.b.column,
      .b_row = task.panels ? width : task.b.row,
      .b_panel = task.panels ? panel : width,
      .depth = depth,
      .c = task.c + i * task.c_stride + j,
      .c_row = task.c_stride,
      .first = k == 0};
}

/// Computes a block at the right edge, of which only the first `width` columns exist.
void add_narrow_block(const FusedLanes& lanes, LaneOperands of, int64_t rows, int64_t width) {
  std::array<float, kMostLaneSums> sums{};
  float* const c = std::exchange(of.c, sums.data());
  const int64_t c_row = std::exchange(of.c_row, lanes.columns);
  for (int64_t r = 0; r < rows && !of.first; ++r) std::copy_n(c + r * c_row, width, of.c + r * of.c_row);
  lanes.add_products(of, rows);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(of.c + r * of.c_row, width, c + r * c_row);
}

/// Computes columns [begin, task.columns) for depth [k, k + depth), panel by panel of b.
void add_panels(const FusedLanes& lanes, const ProductTask& task, int64_t begin, int64_t k, int64_t depth) {
  thread_local std::vector<float> panel, interleaved;
  panel.resize(static_cast<size_t>(kPanelDepth * lanes.columns));
  const bool interleaves = task.rows >= kRowsWorthPacking && task.columns - begin >= kColumnsWorthInterleaving;
  if (interleaves) {
    interleaved.resize(static_cast<size_t>(task.rows * depth));
    interleave_rows(lanes, task, k, depth, interleaved.data());
  }
  for (int64_t j = begin; j < task.columns; j += lanes.columns) {
    const int64_t width = std::min(lanes.columns, task.columns - j);
    StridedMatrix b{task.b.data + k * task.b.row + j * task.b.column, task.b.row, task.b.column};
    if (!task.panels && (width < lanes.columns || b.column != 1 || task.rows >= kRowsWorthPacking)) {
      pack_panel(b, depth, width, lanes.columns, panel.data());
      b = {panel.data(), lanes.columns, 1};
    }
    for (int64_t i = 0; i < task.rows;) {
      const int64_t rows = lanes.rows_of_block(task.rows - i);
      LaneOperands of = block_of(lanes, task, i, j, k, depth);
      if (interleaves) {
        of.a = interleaved.data() + i * depth;
        of.a_row = 1;
        of.a_column = rows;
      }
      if (!task.panels) {
        of.b = b.data;
        of.b_row = b.row;
      }
      if (width < lanes.columns)
        add_narrow_block(lanes, of, rows, width);
      else
        lanes.add_products(of, rows);
      i += rows;
    }
  }
}

/// If there are few rows, computes leading columns in wide blocks. Returns the number of columns computed: the largest
/// multiple of the narrowest wide block's width. Otherwise returns 0.
int64_t add_wide_blocks(const FusedLanes& lanes, const ProductTask& task, int64_t k, int64_t depth) {
  if (task.rows >= kRowsWorthPacking || (!task.panels && task.b.column != 1)) return 0;
  const int64_t narrowest = lanes.wide_columns / 4, columns = task.columns / narrowest * narrowest;
  for (int64_t i = 0; i < task.rows;) {
    const int64_t rows = lanes.rows_of_wide_block(task.rows - i);
    for (int64_t j = 0, width = lanes.wide_columns / rows; j < columns; j += width) {
      while (width > columns - j) width /= 2;
      lanes.add_wide(block_of(lanes, task, i, j, k, depth), rows, width);
    }
    i += rows;
  }
  return columns;
}

void run_task(const FusedLanes& lanes, const ProductTask& task) {
  const int64_t part = task.panels ? kPackedDepth : kPanelDepth;
  for (int64_t k = 0; k < task.depth; k += part) {
    const int64_t depth = std::min(part, task.depth - k);
    const int64_t begin = add_wide_blocks(lanes, task, k, depth);
    if (begin < task.columns) add_panels(lanes, task, begin, k, depth);
  }
  finish_rows(task);
}

/// Divides a GEMM into tasks for threads.
void run_tasks(ThreadPool& threads, const ProductTask& whole) {
  static const FusedLanes& lanes = fused_lanes();
  const int64_t rows = whole.rows, columns = whole.columns, depth = whole.depth;
  // If there are few rows, tasks split the columns, so that each thread reads its own part of `b`. A task is at least
  // as wide as one widest block.
  const int64_t unit = rows < kRowsWorthPacking ? lanes.wide_columns / lanes.rows_of_wide_block(rows) : 64;
  const int64_t across = rows >= kTaskRows ? columns : std::max<int64_t>(unit, (columns / 4 + unit - 1) / unit * unit);
  const int64_t tasks_across = parts_of(columns, across), down = parts_of(rows, kTaskRows);
  const int64_t products_of_task = std::min(rows, kTaskRows) * std::min(columns, across) * depth;
  const int64_t grain = std::max<int64_t>(1, kProductsWorthAThread / std::max<int64_t>(1, products_of_task));
  threads.parallel_for(down * tasks_across, grain, [&](int64_t first, int64_t last) {
    for (int64_t number = first; number < last; ++number) {
      const int64_t i = number / tasks_across * kTaskRows, j = number % tasks_across * across;
      ProductTask task = whole;
      task.a.data += i * whole.a.row;
      if (whole.panels)
        task.panels += j * whole.depth;
      else
        task.b.data += j * whole.b.column;
      if (whole.end.addend) task.end.addend += i * whole.end.stride + j;
      task.c += i * whole.c_stride + j;
      task.rows = std::min(kTaskRows, whole.rows - i);
      task.columns = std::min(across, whole.columns - j);
      run_task(lanes, task);
    }
  });
}

}  // namespace

void ordered_product(StridedMatrix a, StridedMatrix b, ProductEnd end, float* c, int64_t c_stride, int64_t rows,
                     int64_t columns, int64_t depth) {
  run_task(fused_lanes(), {a, b, end, c, c_stride, rows, columns, depth});
}

void ordered_product(ThreadPool& threads, StridedMatrix a, StridedMatrix b, ProductEnd end, float* c, int64_t c_stride,
                     int64_t rows, int64_t columns, int64_t depth) {
  run_tasks(threads, {a, b, end, c, c_stride, rows, columns, depth});
}

void packed_product(ThreadPool& threads, StridedMatrix a, PanelMatrix b, ProductEnd end, float* c, int64_t c_stride,
                    int64_t rows, int64_t columns, int64_t depth) {
  HCTR_EXPECT(b.width == packed_width() && b.depth == depth, "panels of ", b.width, " columns and depth ", b.depth);
  run_tasks(threads, {a, {}, end, c, c_stride, rows, columns, depth, b.data});
}

int64_t packed_width() { return fused_lanes().columns; }

int64_t packed_elements(int64_t depth, int64_t columns) {
  const int64_t width = packed_width();
  return parts_of(columns, width) * width * depth;
}

void pack_columns(StridedMatrix b, int64_t depth, int64_t columns, float* panels) {
  const int64_t width = packed_width();
  for (int64_t j = 0; j < columns; j += width)
    pack_panel({b.data + j * b.column, b.row, b.column}, depth, std::min(width, columns - j), width,
               panels + j * depth);
}

}  // namespace hctr::ops
