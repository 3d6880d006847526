// How one rank's rows of a batch are laid out in one buffer, so that a single copy brings them to the device: keys in
// 32 bits where they fit, no offsets where they follow from the number of rows, and nothing between the parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/packed_keys.h"
#include "core/base/step_state.h"

namespace hctr {

/// Capacities of one batch. Fixed for the whole run; only the counts inside vary.
struct BatchShape {
  struct Table {
    int64_t slots = 0;         ///< consecutive slots of the record that belong to this sparse input
    int64_t key_capacity = 0;  ///< maximum keys of one batch in this input
    int64_t keep = 0;          ///< a bag with more keys keeps its first `keep` ones; 0: bags stay as on file
    bool keep_last = false;    ///< keeps the last ones instead
  };
  int64_t samples = 0;  ///< rows, per rank
  int64_t label_dim = 0, dense_dim = 0;
  std::vector<Table> tables;

  int64_t slots() const {
    int64_t sum = 0;
    for (const Table& table : tables) sum += table.slots;
    return sum;
  }
};

/// The rows that each of `ranks` has memory for, of a batch of `samples`: the last ranks may have fewer samples.
constexpr int64_t samples_of_rank(int64_t samples, int64_t ranks) { return (samples + ranks - 1) / ranks; }

/// Byte offsets of the parts of a batch buffer. Every part starts at a multiple of 256.
///   state    StepState
///   header   the bytes in use, i64; PackedKeys [tables]
///   label    f32 [samples, label_dim]
///   dense    f32 [samples, dense_dim]
///   packed   of each table offsets, where its PackedKeys have them, and keys: where the PackedKeys say
/// Rows past valid_samples have label and dense 0 and empty bags. Ops take the tables unpacked, in a buffer of the
/// device: per table t, slot-major,
///   offsets  i32 [slots * samples + 1]: bag (slot s, sample b) holds keys offsets[s * samples + b] up to the next
///   keys     i64 [key_capacity]: undefined past offsets.back()
/// and dense values where they are uploaded, or there too with zeros after each row, if rows are further apart or of
/// another dtype.
struct BatchLayout {
  /// `dense_stride`: from one row of dense values to the next as operators read them, dense_dim if that is larger.
  /// `dense_dtype`: f32 f16 bf16, as operators read them.
  explicit BatchLayout(const BatchShape&, int64_t dense_stride = 0, DType dense_dtype = DType::f32);

  struct Table {
    size_t offsets = 0, keys = 0;
  };
  BatchShape shape;
  size_t state = 0, header = 0, label = 0, dense = 0, packed = 0;
  size_t bytes = 0;           ///< size of the largest possible buffer
  std::vector<Table> tables;  ///< places in the unpacked buffer
  size_t unpacked_bytes = 0;
  int64_t dense_stride = 0;  ///< elements
  DType dense_dtype = DType::f32;
  size_t unpacked_dense = 0;  ///< place in the unpacked buffer, if unpacks_dense()
  bool unpacks_dense() const { return dense_stride > shape.dense_dim || dense_dtype != DType::f32; }
};

/// How a table is going to be packed.
struct KeyForm {
  int64_t count = 0;     ///< keys
  bool fits_32 = false;  ///< each key lies in 0 ... 2^32 - 1
  bool ones = false;     ///< each of the first `rows` samples has one key in each slot, and others have none
  int64_t rows = 0;
  bool by_sample = false;     ///< keys lie by sample, then by slot; needs `ones`
  bool sign_extends = false;  ///< keys of 4 bytes are signed, instead of `fits_32`
};

/// One batch buffer. Reading keys needs a buffer that place() was called for.
struct BatchView {
  BatchView(const BatchLayout&, std::byte* buffer);

  struct Table {
    const PackedKeys* packed;
    std::byte* buffer;
    int64_t samples;

    /// Key i of the table.
    int64_t key(int64_t i) const {
      i = packed->place_of(i);
      if (packed->key_bytes == 8) return keys<int64_t>()[i];
      return packed->sign_extends ? int64_t{keys<int32_t>()[i]} : int64_t{keys<uint32_t>()[i]};
    }
    /// The key must fit the form.
    void set_key(int64_t i, int64_t key) const {
      i = packed->place_of(i);
      if (packed->key_bytes == 4)
        keys<uint32_t>()[i] = static_cast<uint32_t>(key);
      else
        keys<int64_t>()[i] = key;
    }
    /// Where the keys of bag slot * samples + sample begin; of one past the last bag, where they end.
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
    /// The keys as they are stored: int64_t, or uint32_t or int32_t where packed->key_bytes is 4.
    template <class Key>
    Key* keys() const {
      return reinterpret_cast<Key*>(buffer + packed->keys);
    }
    /// Only where packed->offsets is not kOnes.
    int32_t* offsets() const { return reinterpret_cast<int32_t*>(buffer + packed->offsets); }
  };
  /// Chooses the places of all tables, whose keys and offsets are to be written then. Errors: Error(bug) when a table
  /// has more keys than its capacity.
  void place(std::span<const KeyForm>) const;
  /// Bytes in use, from the start of the buffer.
  size_t bytes() const { return static_cast<size_t>(*used); }

  const BatchLayout* layout;
  StepState* state;
  int64_t* used;
  PackedKeys* packed;  ///< [tables]
  float *label, *dense;
  std::vector<Table> tables;
};

}  // namespace hctr
