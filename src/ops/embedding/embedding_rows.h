// Rows of an embedding table as kernels see them: arrays, initial values, gather and scatter.
#pragma once

#include "core/device/op.h"
#include "ops/common/rounding.h"
#include "ops/embedding/hash_index.h"
#include "ops/embedding/normal_value.h"
#include "ops/embedding/row_elements.h"
#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops {

/// All arrays with one element or vector per row. The addresses of the arrays are fixed for the life of the table; the
/// number of rows grows.
struct RowData {
  int64_t dim = 0;
  RowMemory vectors;              // [rows, dim]
  RowMemory states[kMostStates];  // [rows, state_dim] each; one array per optimizer state
  int64_t state_dim = 0;          // dim, or 1 for one f32 state per row
  int32_t* last_step = nullptr;   // [rows] lazy updates: the last update that touched the row
  uint8_t* touched = nullptr;     // [rows] global updates: 1 between update_rows() and sweep_rows(), else 0
  RowIdentity identity;           // key and slot of each row: seeds of initial values and rounding
  uint64_t rounding = 0;          // random_key(seed, rounding stream); see RowRounding

  /// Whether vectors and states are all f32, so that no rounding is needed.
  HCTR_HD bool all_f32() const {
    bool all = vectors.dtype == DType::f32;
    for (const RowMemory& state : states) all = all && state.dtype == DType::f32;
    return all;
  }
  HCTR_HD RowRounding rounding_of(int64_t row, int64_t update) const {
    const RowOwner owner = identity.of(row);
    return {random_key(rounding, static_cast<uint64_t>(update)), owner.key, owner.slot};
  }
};

/// Distribution of a row's initial values: uniform on [-bound, bound), normal with standard deviation `bound`, or
/// constant `bound`.
enum class InitialKind : uint8_t { uniform, normal, constant };

/// Initial values of rows. Element e of the row of (key, slot) is a function of bits = philox(random_key(seed, stream),
/// key, slot << 32 | e / 4)[e % 4], for example symmetric_float(bits, bound). The values do not depend on when a key
/// arrives. Splitting rows into pieces does not change the values: if slot s stores piece s % pieces of the rows of
/// slot s / pieces, the piece has the same elements as the whole row.
struct RowInit {
  uint64_t key = 0;  ///< random_key(seed, stream)
  float bound = 0.05f;
  InitialKind kind = InitialKind::uniform;
  const float* slot_bounds = nullptr;   // [slots] bound of each slot; null: `bound` for all
  float state_start[kMostStates] = {};  // initial values of the optimizer states
  bool all_states = false;              // also writes states whose initial value is 0
  int32_t pieces = 1, piece_dim = 0;    // piece_dim: a multiple of 4 if pieces > 1

  HCTR_HD bool writes(int state, const RowMemory& memory) const {
    return memory.data && (all_states || state_start[state] != 0);
  }
  HCTR_HD float value(uint32_t bits, float of_bound) const {
    switch (kind) {
      case InitialKind::normal:
        return normal_float(bits) * of_bound;
      case InitialKind::constant:
        return of_bound;
      default:
        return symmetric_float(bits, of_bound);
    }
  }
  HCTR_HD float bound_of(int32_t slot) const { return slot_bounds ? slot_bounds[slot] : bound; }
  HCTR_HD Random4 four(int64_t row_key, int32_t slot, int64_t e) const {
    const int64_t element = e + slot % pieces * piece_dim;
    return philox(key, static_cast<uint64_t>(row_key),
                  static_cast<uint64_t>(slot / pieces) << 32 | static_cast<uint64_t>(element >> 2));
  }
};

/// Initializes the vectors and states of rows state.ready + 1 to state.rows, rounded to nearest in the storage type. A
/// state whose initial value is 0 is skipped unless all_states is set, because new memory is zero.
HCTR_OP(void init_new_rows(Context&, HashIndex, RowInit, RowData))
/// Initializes rows[i]. The keys of these rows must be set. Shapes: rows [count].
HCTR_OP(void init_rows(Context&, const int32_t* rows, int64_t count, RowInit, RowData))

/// gather_rows(): x[i] = table[rows[i]]. scatter_rows(): table[rows[i]] = x[i]; rows[i] must be distinct, and row 0 is
/// skipped. Values are rounded to nearest if the dtypes differ, else copied. Shapes: x [n, words], dense; table [..,
/// words]. Dtypes: x f32 with a table of f32, f16 or bf16; x i32 with a table of i32.
HCTR_OP(void gather_rows(Context&, const int32_t* rows, RowMemory table, Tensor x))
HCTR_OP(void scatter_rows(Context&, const int32_t* rows, Tensor x, RowMemory table))

/// to[i] = row rows[i] of an array with `bytes` bytes per row, of any element type. Shapes: rows [count], to [count,
/// bytes].
HCTR_OP(void copy_rows(Context&, const int32_t* rows, int64_t count, const void* column, int64_t bytes, void* to))

}  // namespace hctr::ops
