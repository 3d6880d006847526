#include "formats/norm/norm_pattern.h"

#include <algorithm>

#include "formats/data/one_hot.h"
#include "formats/norm/key_columns.h"

namespace hctr {
namespace {

/// Why an attempt succeeded or failed. bad: some record is bad. wider: some key needs 64 bits in the block.
/// other_counts: some slot has another number of keys than in the pattern.
enum class Outcome { good, bad, wider, other_counts };

/// Copies `count` floats. Returns a value whose highest bit is set if any float is NaN or infinite.
inline uint32_t copy_floats(const std::byte* from, int64_t count, float* to) {
  int64_t i = 0;
  Words4 any = {};
  for (; i + 4 <= count; i += 4) {
    const auto bits = load_vector<Words4>(from + i * 4);
    any |= (bits & 0x7fffffffu) + 0x00800000u;
    store_vector(to + i, bits);
  }
  uint32_t outside = bits_of(any);
  for (; i < count; ++i) {
    const auto bits = load<uint32_t>(from + i * 4);
    outside |= (bits & 0x7fffffffu) + 0x00800000u;
    std::memcpy(to + i, &bits, sizeof bits);
  }
  return outside;
}

/// Walks the slots of an input with any number of keys, up to `end`. Returns the end of the input; null if a limit is
/// exceeded.
const std::byte* walk_input(const std::byte* p, const std::byte* end, const RecordShape::Input& input,
                            ptrdiff_t key_bytes, int32_t* nnz) {
  int64_t keys = 0;
  for (int64_t s = 0; s < input.slots; ++s) {
    if (end - p < 4) return nullptr;
    const auto count = load<int32_t>(p);
    keys += count;
    if (count < 0 || !input.allows(s, count, keys) || (end - p - 4) / key_bytes < count) return nullptr;
    nnz[s] = count;
    p += 4 + count * key_bytes;
  }
  return p;
}

/// One attempt to parse a chunk. Key: type of the keys in the file. Out: type of the keys in the block.
template <class Key, class Out>
class PatternParse {
 public:
  PatternParse(const NormInfo& info, const Chunk& chunk, NormPattern& pattern, SampleBlock& block)
      : info_(info), chunk_(chunk), pattern_(pattern), block_(block), inputs_(info.shape.inputs.size()) {}

  Outcome parse(const RowSelection& selection, bool sums) {
    rows_ = selection.count(chunk_.records);
    block_.rows = rows_;
    const RecordShape& shape = info_.shape;
    grow(block_.label, rows_ * shape.label_dim);
    grow(block_.dense, rows_ * shape.dense_dim);
    grow(pattern_.inputs, rows_ * std::max<int64_t>(static_cast<int64_t>(inputs_), 1));
    const bool one_hot = std::all_of(pattern_.ones.begin(), pattern_.ones.end(), [](uint8_t one) { return one != 0; });
    if (!one_hot) grow(pattern_.nnz, rows_ * info_.sizes.slots);
    // Keys are transposed tile by tile, so that the records of a tile are still in the L1 cache. A tile has enough
    // records to fill whole cache lines of the block. If some slots do not have exactly one key, the key counts of all
    // records are collected first.
    KeyColumns<Out> columns(block_, rows_);
    int64_t row = 0, tile = 0;
    Outcome so_far = Outcome::good;
    if (one_hot) columns.reserve(rows_ * info_.sizes.slots);
    selection.for_each(chunk_.records, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; so_far == Outcome::good && i < end; ++i) {
        so_far = one_hot ? one_hot_record(i, row, sums) : any_record(i, row, sums);
        ++row;
        if (so_far == Outcome::good && one_hot && (row - tile == kTileRows || row == rows_)) {
          place_ones(columns, 0, info_.sizes.slots, 0, tile, row);
          tile = row;
        }
      }
    });
    if (so_far != Outcome::good) return so_far;
    if (static_cast<int32_t>(outside_) < 0) return Outcome::bad;
    if (!one_hot) place_inputs(columns);
    block_.one_hot = one_hot;
    if (!one_hot) mark_ones();
    return outcome();
  }

 private:
  static constexpr int64_t kTileRows = 16;

  /// The payload of a record; null if its checksum is wrong.
  const std::byte* payload(int64_t record, bool sums, const std::byte*& end) const {
    const std::byte* p = chunk_.buffer.data() + chunk_.begins[static_cast<size_t>(record)];
    end = chunk_.buffer.data() + chunk_.begins[static_cast<size_t>(record) + 1];
    if (info_.check != Check::sum) return p;
    p += formats::kFrameLengthBytes;
    end -= formats::kFrameSumBytes;
    return !sums || byte_sum(p, static_cast<size_t>(end - p)) == static_cast<uint8_t>(*end) ? p : nullptr;
  }
  const std::byte* read_numbers(const std::byte* p, int64_t row) {
    const int64_t label = info_.shape.label_dim, dense = info_.shape.dense_dim;
    outside_ |= copy_floats(p, label, block_.label.data() + row * label);
    outside_ |= copy_floats(p + label * 4, dense, block_.dense.data() + row * dense);
    return p + info_.sizes.numbers;
  }

  Outcome one_hot_record(int64_t record, int64_t row, bool sums) {
    const std::byte* end;
    const std::byte* p = payload(record, sums, end);
    if (!p) return Outcome::bad;
    if (end - p != static_cast<ptrdiff_t>(info_.sizes.one_hot)) return Outcome::other_counts;
    pattern_.inputs[static_cast<size_t>(row)] = read_numbers(p, row);
    return Outcome::good;
  }

  Outcome any_record(int64_t record, int64_t row, bool sums) {
    const std::byte* end;
    const std::byte* p = payload(record, sums, end);
    if (!p || end - p < static_cast<ptrdiff_t>(info_.sizes.numbers)) return Outcome::bad;
    p = read_numbers(p, row);
    int32_t* nnz = pattern_.nnz.data() + row * info_.sizes.slots;
    for (size_t i = 0; i < inputs_; ++i) {
      pattern_.inputs[i * static_cast<size_t>(rows_) + static_cast<size_t>(row)] = p;
      const RecordShape::Input& input = info_.shape.inputs[i];
      if (pattern_.ones[i]) {
        const ptrdiff_t bytes = input.slots * static_cast<ptrdiff_t>(info_.sizes.slot_stride);
        if (end - p < bytes) return Outcome::other_counts;
        p += bytes;
      } else {
        p = walk_input(p, end, input, sizeof(Key), nnz);
        if (!p) return Outcome::other_counts;
      }
      nnz += input.slots;
    }
    return p == end ? Outcome::good : Outcome::other_counts;
  }

  /// Transposes rows [begin, end) of an input with one key per slot. `at`: index of the input's first key.
  void place_ones(const KeyColumns<Out>& columns, size_t input, int64_t slots, int64_t at, int64_t begin, int64_t end) {
    const std::byte* const* from = pattern_.inputs.data() + static_cast<int64_t>(input) * rows_;
    columns.template transpose<Key>({from + begin, static_cast<size_t>(end - begin)}, slots, info_.sizes.slot_stride,
                                    at + begin, seen_);
  }

  void place_inputs(KeyColumns<Out>& columns) {
    grow(block_.offsets, rows_ * info_.sizes.slots + 1);
    int64_t first = 0;
    int32_t at = 0;
    for (size_t i = 0; i < inputs_; ++i) {
      const int64_t slots = info_.shape.inputs[i].slots;
      if (pattern_.ones[i]) {
        columns.reserve(at + slots * rows_);
        for (int64_t begin = 0; begin < rows_; begin += kTileRows)
          place_ones(columns, i, slots, at, begin, std::min(begin + kTileRows, rows_));
        for (int64_t s = 0; s < slots; ++s)
          block_.offsets[static_cast<size_t>((first + s) * rows_)] = at + static_cast<int32_t>(s * rows_);
        at += static_cast<int32_t>(slots * rows_);
      } else {
        at = place_bags(columns, i, first, slots, at);
      }
      first += slots;
    }
    block_.offsets[static_cast<size_t>(first * rows_)] = at;
  }

  int32_t place_bags(KeyColumns<Out>& columns, size_t input, int64_t first, int64_t slots, int32_t at) {
    const int64_t all = info_.sizes.slots;
    for (int64_t s = first; s < first + slots; ++s)
      for (int64_t r = 0; r < rows_; ++r) {
        block_.offsets[static_cast<size_t>(s * rows_ + r)] = at;
        at += pattern_.nnz[static_cast<size_t>(r * all + s)];
      }
    columns.reserve(at);
    for (int64_t r = 0; r < rows_; ++r) {
      const std::byte* p = pattern_.inputs[static_cast<size_t>(static_cast<int64_t>(input) * rows_ + r)];
      for (int64_t s = first; s < first + slots; ++s) {
        Out* to = columns.keys() + block_.offsets[static_cast<size_t>(s * rows_ + r)];
        p += sizeof(int32_t);
        for (int32_t k = pattern_.nnz[static_cast<size_t>(r * all + s)]; k > 0; --k, p += sizeof(Key)) {
          const auto key = static_cast<uint64_t>(load<Key>(p));
          seen_.high |= static_cast<uint32_t>(key >> 32);
          *to++ = static_cast<Out>(key);
        }
      }
    }
    return at;
  }

  void mark_ones() {
    block_.ones.clear();
    for (size_t i = 0; i < inputs_; ++i)
      block_.ones.insert(block_.ones.end(), static_cast<size_t>(info_.shape.inputs[i].slots), pattern_.ones[i]);
  }

  Outcome outcome() {
    if (!seen_.all_one()) return Outcome::other_counts;
    if (sizeof(Out) == 4 && seen_.high != 0) return Outcome::wider;
    block_.narrow = sizeof(Out) == 4;
    block_.fits_32 = seen_.high == 0;
    return Outcome::good;
  }

  const NormInfo& info_;
  const Chunk& chunk_;
  NormPattern& pattern_;
  SampleBlock& block_;
  size_t inputs_;
  int64_t rows_ = 0;
  uint32_t outside_ = 0;
  SlotsSeen seen_;
};

/// Clears pattern.ones for each input in which some slot of records [0, records) does not have exactly one key.
void learn(const NormInfo& info, const Chunk& chunk, int64_t records, NormPattern& pattern) {
  if (pattern.ones.empty())
    for (const RecordShape::Input& input : info.shape.inputs) pattern.ones.push_back(input.allows_one_hot());
  for (int64_t i = 0; i < records; ++i) {
    const std::byte* p = chunk.buffer.data() + chunk.begins[static_cast<size_t>(i)];
    const std::byte* end = chunk.buffer.data() + chunk.begins[static_cast<size_t>(i) + 1];
    if (info.check == Check::sum) p += formats::kFrameLengthBytes, end -= formats::kFrameSumBytes;
    if (end - p < static_cast<ptrdiff_t>(info.sizes.numbers)) continue;
    walk_slots(p + info.sizes.numbers, end, info.shape, info.key_bytes,
               {.nnz = nullptr, .inputs = nullptr, .one_hot = pattern.ones.data()});
  }
}

template <class Key>
Outcome parse(const NormInfo& info, const Chunk& chunk, const RowSelection& rows, bool sums, NormPattern& pattern,
              SampleBlock& block) {
  if (!pattern.wide) {
    const Outcome outcome = PatternParse<Key, uint32_t>(info, chunk, pattern, block).parse(rows, sums);
    if (outcome != Outcome::wider) return outcome;
    pattern.wide = true;
  }
  return PatternParse<Key, int64_t>(info, chunk, pattern, block).parse(rows, sums);
}

}  // namespace

bool parse_norm_pattern(const NormInfo& info, const Chunk& chunk, const RowSelection& rows, bool sums,
                        NormPattern& pattern, SampleBlock& block) {
  if (rows.count(chunk.records) == 0) return false;
  if (pattern.ones.empty()) learn(info, chunk, 1, pattern);
  const auto attempt = [&] {
    return info.key_bytes == 4 ? parse<uint32_t>(info, chunk, rows, sums, pattern, block)
                               : parse<int64_t>(info, chunk, rows, sums, pattern, block);
  };
  const Outcome outcome = attempt();
  if (outcome != Outcome::other_counts) return outcome == Outcome::good;
  const std::vector<uint8_t> before = pattern.ones;
  learn(info, chunk, chunk.records, pattern);
  return pattern.ones != before && attempt() == Outcome::good;
}

}  // namespace hctr
