// Parsing Raw records: numbers converted, keys turned from record order into slot order.
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "data/log_of_count.h"
#include "data/norm_record.h"
#include "data/one_hot.h"
#include "data/raw_set.h"

namespace hctr {
namespace {

/// The key as stored. 32-bit keys are signed here, so that none is negative.
int64_t key_at(const RawShape& shape, const std::byte* keys, int64_t slot) {
  return shape.key_bytes == 4 ? int64_t{load<int32_t>(keys + 4 * slot)} : load<int64_t>(keys + 8 * slot);
}

/// Whether a key is negative, or would be once `more`, which is not, is added.
template <class Key>
bool any_outside(const std::byte* keys, int64_t slots, int64_t more) {
  uint64_t all = 0;
  for (int64_t s = 0; s < slots; ++s) {
    const auto key = static_cast<uint64_t>(int64_t{load<Key>(keys + static_cast<size_t>(s) * sizeof(Key))});
    all |= key | (key + static_cast<uint64_t>(more));
  }
  return static_cast<int64_t>(all) < 0;
}

/// Label and dense of one record; false when one is not finite.
bool read_numbers(const RawShape& shape, const std::byte* record, float* label, float* dense) {
  const std::byte* from = record + 4 * shape.label_dim;
  if (shape.floats) {
    std::memcpy(label, record, static_cast<size_t>(4 * shape.label_dim));
    if (shape.dense_dim > 0) std::memcpy(dense, from, static_cast<size_t>(4 * shape.dense_dim));
  } else {
    for (int64_t i = 0; i < shape.label_dim; ++i) label[i] = static_cast<float>(load<int32_t>(record + 4 * i));
    for (int64_t i = 0; i < shape.dense_dim; ++i) dense[i] = log_of_count(load<int32_t>(from + 4 * i));
  }
  float zero = 0;  // stays 0 unless something is not finite
  for (int64_t i = 0; i < shape.label_dim; ++i) zero += label[i] * 0.0f;
  for (int64_t i = 0; i < shape.dense_dim; ++i) zero += dense[i] * 0.0f;
  return zero == 0;
}

std::string problem_of(const RawShape& shape, const std::byte* record) {
  for (int64_t i = 0; i < shape.label_dim + shape.dense_dim; ++i) {
    const bool is_label = i < shape.label_dim;
    const std::string column = is_label ? cat("label ", i) : cat("dense value ", i - shape.label_dim);
    if (shape.floats && !std::isfinite(load<float>(record + 4 * i))) return cat(column, " is ", load<float>(record + 4 * i));
    if (!shape.floats && !is_label && load<int32_t>(record + 4 * i) < 0)
      return cat(column, " is ", load<int32_t>(record + 4 * i), ", and ln(x + 1) is taken of integers; store floats and say \"float_label_dense\": true");
  }
  for (int64_t s = 0; s < shape.slots; ++s)
    if (const int64_t key = key_at(shape, record + shape.numbers(), s); key < 0) return cat("slot ", s, " has the key ", key, "; keys are not negative");
    else if (!shape.offsets.empty() && key > std::numeric_limits<int64_t>::max() - shape.offsets.back())
      return cat("slot ", s, " has the key ", key, ", to which the sizes of other slots cannot be added");
  return "is of no use";
}

}  // namespace

BadRecords parse_raw(const RawShape& shape, const std::byte* bytes, int64_t records, std::optional<BadRecordPolicy> policy,
                     const std::function<std::string(int64_t)>& where, std::vector<const std::byte*>& scratch, SampleBlock& block) {
  grow(block.label, records * shape.label_dim);
  grow(block.dense, records * shape.dense_dim);
  scratch.clear();
  BadRecords bad;
  const int64_t more = shape.offsets.empty() ? 0 : shape.offsets.back();  // the largest that will be added
  int64_t rows = 0;
  for (int64_t i = 0; i < records; ++i) {
    const std::byte* record = bytes + i * shape.record();
    const std::byte* keys = record + shape.numbers();
    const bool good = read_numbers(shape, record, block.label.data() + rows * shape.label_dim, block.dense.data() + rows * shape.dense_dim) &&
                      !(shape.key_bytes == 4 ? any_outside<int32_t>(keys, shape.slots, more) : any_outside<int64_t>(keys, shape.slots, more));
    if (!good) {
      bad.add([&] { return cat(where(i), ": ", problem_of(shape, record)); });
      if (policy != BadRecordPolicy::skip) throw Error(Kind::data, bad.first);
      continue;
    }
    scratch.push_back(keys);
    ++rows;
  }
  block.rows = rows;
  const int64_t* add = shape.offsets.empty() ? nullptr : shape.offsets.data();
  if (shape.key_bytes == 4) place_one_hot<int32_t>(scratch, shape.slots, 4, add, block);
  else place_one_hot<int64_t>(scratch, shape.slots, 8, add, block);
  return bad;
}

}  // namespace hctr
