// The layout of one rank's batch in a single buffer, so that one copy uploads the batch. To save bytes, keys are 32-bit
// if all fit, offsets are omitted if the number of rows implies them, and unused capacity is not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/packed_keys.h"
#include "core/base/step_state.h"

namespace hctr {

/// Capacities of a batch buffer, fixed for the whole run. The actual counts vary per batch.
struct BatchShape {
  struct Table {
    int64_t slots = 0;         ///< consecutive slots of the record that belong to this sparse input
    int64_t key_capacity = 0;  ///< maximum keys per batch of this input
    int64_t keep = 0;          ///< longer bags are truncated to their first `keep` keys; 0: not truncated
    bool keep_last = false;    ///< true: longer bags keep their last `keep` keys instead
  };
  int64_t samples = 0;  ///< rows per rank
  int64_t label_dim = 0, dense_dim = 0;
  std::vector<Table> tables;

  int64_t slots() const {
    int64_t sum = 0;
    for (const Table& table : tables) sum += table.slots;
    return sum;
  }
};

/// Row capacity of each rank if `ranks` ranks split a batch of `samples`. The last ranks may have fewer rows.
constexpr int64_t samples_of_rank(int64_t samples, int64_t ranks) { return (samples + ranks - 1) / ranks; }

/// Byte offsets of the parts of a batch buffer. Every part starts at a multiple of 256.
///   state    StepState
///   header   i64 number of used bytes; PackedKeys [tables]
///   label    f32 [samples, label_dim]
///   dense    f32 [samples, dense_dim]
///   packed   offsets (optional) and keys of each table, at the byte offsets in its PackedKeys
/// Rows from valid_samples on have label 0, dense values 0 and empty bags.
///
/// Operators read unpacked tables from a second buffer on the device. For each table, slot-major:
///   offsets  i32 [slots * samples + 1]: with i = s * samples + b, the bag of slot s and sample b has the keys
///            keys[offsets[i]], ..., keys[offsets[i + 1] - 1]
///   keys     i64 [key_capacity]: undefined from offsets.back() on
/// Operators read dense values from the batch buffer or, if unpacks_dense(), from a copy in the second buffer. The copy
/// has the given stride and dtype, and zeros between rows.
struct BatchLayout {
  /// `dense_stride`: elements from one row of dense values to the next, at least dense_dim. `dense_dtype`: f32, f16 or
  /// bf16. Both describe the dense values that operators read.
  explicit BatchLayout(const BatchShape&, int64_t dense_stride = 0, DType dense_dtype = DType::f32);

  struct Table {
    size_t offsets = 0, keys = 0;
  };
  BatchShape shape;
  size_t state = 0, header = 0, label = 0, dense = 0, packed = 0;
  size_t bytes = 0;           ///< maximum size of the batch buffer
  std::vector<Table> tables;  ///< offsets in the unpacked buffer
  size_t unpacked_bytes = 0;
  int64_t dense_stride = 0;  ///< elements from one row to the next
  DType dense_dtype = DType::f32;
  size_t unpacked_dense = 0;  ///< offset in the unpacked buffer, if unpacks_dense()
  bool unpacks_dense() const { return dense_stride > shape.dense_dim || dense_dtype != DType::f32; }
};

/// How the keys of one table are packed.
struct KeyForm {
  int64_t count = 0;     ///< number of keys
  bool fits_32 = false;  ///< each key is in [0, 2^32 - 1]
  bool ones = false;     ///< the first `rows` samples have one key per slot; later samples have no keys
  int64_t rows = 0;
  bool by_sample = false;     ///< keys are ordered by sample, then slot; requires `ones`
  bool sign_extends = false;  ///< each key is in [-2^31, 2^31 - 1]; set instead of `fits_32`
};

/// Accesses the parts of one batch buffer. Call place() before accessing keys.
struct BatchView {
  BatchView(const BatchLayout&, std::byte* buffer);

  struct Table {
    const PackedKeys* packed;
    std::byte* buffer;
    int64_t samples;

    /// Reads key i of the table.
    int64_t key(int64_t i) const {
      i = packed->place_of(i);
      if (packed->key_bytes == 8) return keys<int64_t>()[i];
      return packed->sign_extends ? int64_t{keys<int32_t>()[i]} : int64_t{keys<uint32_t>()[i]};
    }
    /// Writes key i. The key must fit the packed width.
    void set_key(int64_t i, int64_t key) const {
      i = packed->place_of(i);
      if (packed->key_bytes == 4)
        keys<uint32_t>()[i] = static_cast<uint32_t>(key);
      else
        keys<int64_t>()[i] = key;
    }
    /// Index of the first key of a bag. The bag of slot s and sample b has the index s * samples + b. The offset past
    /// the last bag is the number of keys.
    int32_t offset(int64_t bag) const {
      return packed->offsets != PackedKeys::kOnes
                 ? offsets()[bag]
                 : static_cast<int32_t>(packed->begin_of_ones(bag / samples, bag % samples));
    }
    std::vector<int64_t> keys_of(int64_t begin, int64_t end) const {
      std::vector<int64_t> found;
      for (int64_t i = begin; i < end; ++i) found.push_back(key(i));
      return found;
    }
    /// The stored keys. Key: int64_t; if packed->key_bytes is 4, uint32_t or int32_t.
    template <class Key>
    Key* keys() const {
      return reinterpret_cast<Key*>(buffer + packed->keys);
    }
    /// The stored offsets; exist only if packed->offsets is not kOnes.
    int32_t* offsets() const { return reinterpret_cast<int32_t*>(buffer + packed->offsets); }
  };
  /// Assigns the buffer ranges of all tables; the caller then writes keys and offsets. Errors: Error(bug) if a table
  /// has more keys than its capacity.
  void place(std::span<const KeyForm>) const;
  /// Number of bytes in use; they start at the start of the buffer.
  size_t bytes() const { return static_cast<size_t>(*used); }

  const BatchLayout* layout;
  StepState* state;
  int64_t* used;
  PackedKeys* packed;  ///< [tables]
  float *label, *dense;
  std::vector<Table> tables;
};

}  // namespace hctr
