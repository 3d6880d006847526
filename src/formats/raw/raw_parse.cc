// Parses Raw records: converts labels and dense values, and transposes keys from record order to slot order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "core/base/expect.h"
#include "core/base/non_temporal.h"
#include "formats/data/log_of_count.h"
#include "formats/data/norm_record.h"
#include "formats/data/one_hot.h"
#include "formats/raw/raw_set.h"

namespace hctr {
namespace {

/// Loads a key as stored. 32-bit keys are loaded as signed, so keys of 2^31 or more are rejected as negative.
int64_t key_at(const RawShape& shape, const std::byte* keys, int64_t slot) {
  return shape.key_bytes == 4 ? int64_t{load<int32_t>(keys + 4 * slot)} : load<int64_t>(keys + 8 * slot);
}

/// Whether any key is negative, or overflows when `more` (at least 0) is added.
template <class Key>
bool any_outside(const std::byte* keys, int64_t slots, int64_t more) {
  uint64_t all = 0;
  for (int64_t s = 0; s < slots; ++s) {
    const auto key = static_cast<uint64_t>(int64_t{load<Key>(keys + static_cast<size_t>(s) * sizeof(Key))});
    all |= key | (key + static_cast<uint64_t>(more));
  }
  return static_cast<int64_t>(all) < 0;
}

/// Returns a value whose highest bit is set if the number is not finite. Avoids a branch per number.
uint32_t not_finite(float number) { return (std::bit_cast<uint32_t>(number) & 0x7fffffffu) + 0x00800000u; }

/// Reads labels and dense values of one record. Returns false if some value is invalid.
template <bool kStream>
bool read_numbers(const RawShape& shape, const std::byte* record, float* label, float* dense) {
  const int64_t labels = shape.label_dim, numbers = shape.dense_dim;
  const std::byte* from = record + 4 * labels;
  uint32_t outside = 0;
  if (shape.floats) {
    const auto keep = [&](float* to, float number) {
      outside |= not_finite(number);
      store<kStream>(to, number);
    };
    for (int64_t i = 0; i < labels; ++i) keep(label + i, load<float>(record + 4 * i));
    for (int64_t i = 0; i < numbers; ++i) keep(dense + i, load<float>(from + 4 * i));
  } else {
    const LogTable& log = LogTable::get();
    for (int64_t i = 0; i < labels; ++i) store<kStream>(label + i, static_cast<float>(load<int32_t>(record + 4 * i)));
    for (int64_t i = 0; i < numbers; ++i) {
      const auto number = load<int32_t>(from + 4 * i);
      outside |= static_cast<uint32_t>(number);  // a negative number has no finite logarithm
      store<kStream>(dense + i, log(number));
    }
  }
  return static_cast<int32_t>(outside) >= 0;
}

/// Reads labels and dense values of one record and checks its keys. Returns false if the record is bad. `more`: the
/// largest slot offset.
bool read_record(const RawShape& shape, const std::byte* record, int64_t more, float* label, float* dense) {
  const std::byte* keys = record + shape.numbers();
  return read_numbers<false>(shape, record, label, dense) &&
         !(shape.key_bytes == 4 ? any_outside<int32_t>(keys, shape.slots, more)
                                : any_outside<int64_t>(keys, shape.slots, more));
}

std::string problem_of(const RawShape& shape, const std::byte* record) {
  for (int64_t i = 0; i < shape.label_dim + shape.dense_dim; ++i) {
    const bool is_label = i < shape.label_dim;
    const std::string column = is_label ? cat("label ", i) : cat("dense value ", i - shape.label_dim);
    if (shape.floats && !std::isfinite(load<float>(record + 4 * i)))
      return cat(column, " is ", load<float>(record + 4 * i));
    if (!shape.floats && !is_label && load<int32_t>(record + 4 * i) < 0)
      return cat(column, " is ", load<int32_t>(record + 4 * i),
                 ", but ln(x + 1) is applied to integers; store floats and set \"float_label_dense\": true");
  }
  for (int64_t s = 0; s < shape.slots; ++s)
    if (const int64_t key = key_at(shape, record + shape.numbers(), s); key < 0)
      return cat("slot ", s, " has the key ", key, "; expected a key of at least 0");
    else if (!shape.offsets.empty() && key > std::numeric_limits<int64_t>::max() - shape.offsets.back())
      return cat("slot ", s, " has the key ", key,
                 ", which exceeds 64 bits when the sizes of earlier slots are "
                 "added");
  return "is not usable";
}

constexpr int64_t kTileRecords = 64;  // records per tile; their keys stay in the L1 cache while they are transposed

/// The largest offset that is added to keys.
int64_t most_added(const RawShape& shape) { return shape.offsets.empty() ? 0 : shape.offsets.back(); }

/// Transposes the keys of a tile of records to slot order and adds each slot's offset. Returns the bitwise OR of all
/// keys; its sign bit shows whether any key is negative. For 64-bit keys the sign bit also shows an overflow with the
/// largest offset.
template <class Key, class Out, bool kStream>
uint64_t transpose_keys(const RawShape& shape, const std::byte* keys, int64_t records, const OneHotRows& to,
                        int64_t row) {
  uint64_t bits = 0;
  const int64_t record = shape.record();
  const auto more = static_cast<uint64_t>(most_added(shape));
  for (int64_t s = 0; s < shape.slots; ++s, keys += sizeof(Key)) {
    const auto add = static_cast<uint64_t>(shape.offsets.empty() ? 0 : shape.offsets[static_cast<size_t>(s)]);
    const std::byte* from = keys;
    Out* const slot = reinterpret_cast<Out*>(to.keys[static_cast<size_t>(s)]) + row;
    for (int64_t r = 0; r < records; ++r, from += record) {
      const auto key = static_cast<uint64_t>(int64_t{load<Key>(from)});
      bits |= key;
      if constexpr (sizeof(Key) == 8) bits |= key + more;
      store<kStream>(slot + r, static_cast<Out>(key + add));
    }
  }
  return bits;
}

/// Writes all records as rows, without a branch per record. Returns false if some record may be bad.
template <bool kStream>
bool write_rows(const RawShape& shape, const std::byte* bytes, int64_t records, const OneHotRows& to) {
  uint64_t bits = 0;
  bool finite = true;
  for (int64_t begin = 0, count = 0; begin < records; begin += count) {
    const int64_t row = to.row + begin;
    count = std::min(kTileRecords - row % kTileRecords, records - begin);
    const std::byte* from = bytes + begin * shape.record();
    for (int64_t r = 0; r < count; ++r)
      finite &= read_numbers<kStream>(shape, from + r * shape.record(), to.label + (row + r) * shape.label_dim,
                                      to.dense + (row + r) * shape.dense_dim);
    from += shape.numbers();
    bits |= shape.key_bytes == 8 ? transpose_keys<int64_t, int64_t, kStream>(shape, from, count, to, row)
            : to.narrow          ? transpose_keys<int32_t, uint32_t, kStream>(shape, from, count, to, row)
                                 : transpose_keys<int32_t, int64_t, kStream>(shape, from, count, to, row);
  }
  if constexpr (kStream) finish_stores();
  const bool sums_fit = shape.key_bytes == 8 ||
                        most_added(shape) <= std::numeric_limits<int64_t>::max() - std::numeric_limits<int32_t>::max();
  return finite && static_cast<int64_t>(bits) >= 0 && sums_fit;
}

}  // namespace

void parse_raw_rows(const RawShape& shape, const RawRecords& records, const OneHotRows& to) {
  if (write_rows<kNonTemporal>(shape, records.bytes, records.count, to)) return;
  std::vector<float> numbers(static_cast<size_t>(shape.label_dim + shape.dense_dim));
  for (int64_t i = 0; i < records.count; ++i)
    if (const std::byte* record = records.bytes + i * shape.record();
        !read_record(shape, record, most_added(shape), numbers.data(), numbers.data() + shape.label_dim))
      throw Error(Kind::data, cat(records.where(i), ": ", problem_of(shape, record)));
}

BadRecords parse_raw(const RawShape& shape, const RawRecords& raw, std::optional<BadRecordPolicy> policy,
                     RawScratch& scratch, SampleBlock& block) {
  const int64_t records = raw.count;
  grow(block.label, records * shape.label_dim);
  grow(block.dense, records * shape.dense_dim);
  grow(block.keys, records * shape.slots);
  scratch.slots.clear();
  for (int64_t s = 0; s < shape.slots; ++s)
    scratch.slots.push_back(reinterpret_cast<std::byte*>(block.keys.data() + s * records));
  if (write_rows<false>(shape, raw.bytes, records, {block.label.data(), block.dense.data(), scratch.slots})) {
    block.rows = records;
    one_key_each(block, records, shape.slots);
    return {};
  }
  scratch.good.clear();
  BadRecords bad;
  int64_t rows = 0;
  for (int64_t i = 0; i < records; ++i) {
    const std::byte* record = raw.bytes + i * shape.record();
    if (!read_record(shape, record, most_added(shape), block.label.data() + rows * shape.label_dim,
                     block.dense.data() + rows * shape.dense_dim)) {
      bad.add(rows, [&] { return cat(raw.where(i), ": ", problem_of(shape, record)); });
      if (block.names_bad) bad.records.push_back({.record = i, .cause = problem_of(shape, record)});
      if (policy != BadRecordPolicy::skip) throw Error(Kind::data, bad.first);
      continue;
    }
    scratch.good.push_back(record + shape.numbers());
    ++rows;
  }
  block.rows = rows;
  const int64_t* add = shape.offsets.empty() ? nullptr : shape.offsets.data();
  if (shape.key_bytes == 4)
    place_one_hot<int32_t>(scratch.good, shape.slots, 4, add, block);
  else
    place_one_hot<int64_t>(scratch.good, shape.slots, 8, add, block);
  return bad;
}

}  // namespace hctr
