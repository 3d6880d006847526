// Rows of an embedding table as kernels see them: their arrays, their initial values, gather and scatter.
#pragma once

#include "core/device/op.h"
#include "ops/common/rounding.h"
#include "ops/embedding/hash_index.h"
#include "ops/embedding/normal_value.h"
#include "ops/embedding/row_elements.h"
#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops {

/// All arrays with an element per row. Their addresses are fixed for the life of the table; the number of rows grows.
struct RowData {
  int64_t dim = 0;
  RowMemory vectors;              // [rows, dim]
  RowMemory states[kMostStates];  // [rows, state_dim] each, as many as the optimizer has
  int64_t state_dim = 0;          // dim; 1 where a row has one state, which is f32
  int32_t* last_step = nullptr;   // [rows] lazy updates: the update that touched the row last
  uint8_t* touched = nullptr;     // [rows] global updates: 1 between update_rows and sweep_rows, else 0
  RowIdentity identity;           // the seed of initial values and rounding
  uint64_t rounding = 0;          // random_key(seed, stream of the rounding); see RowRounding

  /// Whether every number of a row is f32, so that nothing is rounded.
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

/// How the initial values of rows are distributed: uniform on [-bound, bound), normal with that standard deviation, or
/// all equal to it.
enum class InitialKind : uint8_t { uniform, normal, constant };

/// Initial values: element e of the row of (key, slot) is symmetric_float(bits, bound), or likewise of another kind,
/// with bits = philox(random_key(seed, stream), key, slot << 32 | e / 4)[e % 4]. They do not depend on when a key
/// arrives, nor on whether rows are cut: where slot s holds piece s % pieces of the rows of slot s / pieces, its
/// elements are those of the whole rows.
struct RowInit {
  uint64_t key = 0;  ///< random_key(seed, stream)
  float bound = 0.05f;
  InitialKind kind = InitialKind::uniform;
  const float* slot_bounds = nullptr;   // per slot; null: `bound` for all
  float state_start[kMostStates] = {};  // initial values of the states
  bool all_states = false;              // also writes states that start at 0
  int32_t pieces = 1, piece_dim = 0;    // piece_dim: a multiple of 4, where there are several

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

/// Initializes the vectors and states of rows state.ready + 1 to state.rows. Values are rounded to the nearest of the
/// storage type. A state that starts at 0 is not written, unless the init says so: new memory is 0.
HCTR_OP(void init_new_rows(Context&, HashIndex, RowInit, RowData))
/// The same for rows[i], which have their keys. Shapes: rows [count].
HCTR_OP(void init_rows(Context&, const int32_t* rows, int64_t count, RowInit, RowData))

/// x[i] = table[rows[i]] and table[rows[i]] = x[i]; values are rounded to the nearest if the dtypes differ, else
/// copied. Scattered rows are distinct; nothing is written to row 0. Shapes: x [n, words], dense; table [.., words].
/// Dtypes: x f32 with a table of f32, f16 or bf16; x i32 with a table of i32.
HCTR_OP(void gather_rows(Context&, const int32_t* rows, RowMemory table, Tensor x))
HCTR_OP(void scatter_rows(Context&, const int32_t* rows, Tensor x, RowMemory table))

/// to[i] = row rows[i] of an array with `bytes` bytes per row, whatever they are. Shapes: rows [count], to [count,
/// bytes].
HCTR_OP(void copy_rows(Context&, const int32_t* rows, int64_t count, const void* column, int64_t bytes, void* to))

}  // namespace hctr::ops
