#include "prepare/preprocess/preprocess_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "data/raw/raw_set.h"

namespace hctr {
namespace {

template <class T>
std::byte* put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

/// Values of the row in this column: those of a list, else one.
std::span<const uint64_t> codes_of(const ParsedRows::Category& column, size_t row) {
  if (column.ends.empty()) return {&column.codes[row], 1};
  const size_t begin = row == 0 ? 0 : column.ends[row - 1];
  return std::span(column.codes).subspan(begin, column.ends[row] - begin);
}

int32_t whole(double value) {
  constexpr double most = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::nearbyint(std::clamp(value, 0.0, most)));
}

}  // namespace

void add_crosses(const PreprocessOptions& options, ParsedRows& rows) {
  const size_t crosses = options.crosses.size();
  if (crosses == 0) return;
  std::vector<ParsedRows::Category> all(crosses);
  for (size_t i = 0; i < crosses; ++i) {
    const auto& a = rows.categories[options.crosses[i].first].codes;
    const auto& b = rows.categories[options.crosses[i].second].codes;
    auto& codes = all[i].codes;
    codes.resize(rows.rows);
    for (size_t row = 0; row < rows.rows; ++row) codes[row] = std::max(pair_code(a[row], b[row]), kFirstValue);
  }
  std::move(rows.categories.begin(), rows.categories.end(), std::back_inserter(all));
  rows.categories = std::move(all);
}

RowEncoder::RowEncoder(const PreprocessOptions& options, const ColumnsLearned& learned)
    : options_(options), learned_(learned), offsets_(static_cast<size_t>(options.slots())) {
  const auto wide = static_cast<int64_t>(options.crosses.size());
  style_ = {.label_dim = static_cast<int64_t>(options.table.labels().size()),
            .dense_dim = static_cast<int64_t>(options.table.numbers().size()),
            .slots = options.as_norm() ? options.slots() - wide + (wide > 0 ? 1 : 0) : options.slots(),
            .check = options.as_norm() ? options.check : Check::none,
            .key_bytes = options.key_bytes};
  for (const DenseColumn& column : learned.dense) dense_.emplace_back(options.dense, column);
  texts_.resize(options.crosses.size());
  for (size_t place = 0; place < options.table.categories().size(); ++place) {
    lists_ |= options.table.is_list(place);
    texts_.push_back(options.table.category_kind(place) != ColumnKind::hex && options.modulo == 0);
  }
  if (!options.as_norm()) return;
  for (size_t slot = 1; slot < offsets_.size(); ++slot)
    offsets_[slot] = offsets_[slot - 1] + learned.slot_sizes[slot - 1];
}

void RowEncoder::to_keys(ParsedRows& rows) const {
  for (size_t slot = 0; slot < rows.categories.size(); ++slot) {
    ParsedRows::Category& column = rows.categories[slot];
    const std::span<uint64_t> codes(column.codes.data(), column.ends.empty() ? rows.rows : column.codes.size());
    const auto offset = static_cast<uint64_t>(offsets_[slot]);
    if (options_.passes == 2) {
      learned_.vocabularies[slot].to_ids(codes);
      if (offset > 0)
        for (uint64_t& code : codes) code += offset;
    } else {
      const auto range = static_cast<uint64_t>(options_.range);
      if (texts_[slot])
        for (uint64_t& code : codes)
          code = (code == kMissing ? 0 : static_cast<uint64_t>(scaled_key(code, options_.range))) + offset;
      else
        for (uint64_t& code : codes) code = ranged_key(code, range) + offset;
    }
  }
}

size_t RowEncoder::bytes_of(const ParsedRows& rows, size_t row) const {
  size_t keys = lists_ ? 0 : rows.categories.size();
  if (lists_)
    for (const ParsedRows::Category& column : rows.categories) keys += codes_of(column, row).size();
  const size_t numbers = 4 * static_cast<size_t>(style_.label_dim + style_.dense_dim);
  if (options_.format == kRawFormat) return numbers + 4 * keys;
  const size_t frame = style_.check == Check::sum ? 5 : 0;
  return frame + numbers + 4 * static_cast<size_t>(style_.slots) + keys * static_cast<size_t>(style_.key_bytes);
}

std::byte* RowEncoder::put_number(std::byte* to, double value, const DenseScaling& transform) const {
  if (options_.format == kRawFormat && !options_.float_label_dense)
    return put(to, whole(std::isnan(value) ? options_.dense.fill : value));
  return put(to, transform(value));
}

void RowEncoder::append(const ParsedRows& rows, size_t row, EncodedRecords& records) const {
  const bool raw = options_.format == kRawFormat, framed = !raw && style_.check == Check::sum;
  const size_t begin = records.bytes.size(), bytes = bytes_of(rows, row);
  records.bytes.resize(begin + bytes);
  std::byte* to = records.bytes.data() + begin;
  if (framed) to = put(to, static_cast<int32_t>(bytes - 5));
  std::byte* const payload = to;
  for (const auto& column : rows.labels)
    to = raw && !options_.float_label_dense ? put(to, static_cast<int32_t>(column[row])) : put(to, column[row]);
  for (size_t i = 0; i < rows.numbers.size(); ++i) to = put_number(to, rows.numbers[i][row], dense_[i]);
  const size_t wide = options_.as_norm() ? options_.crosses.size() : 0;
  for (size_t slot = 0; slot < rows.categories.size(); ++slot) {
    const auto keys = codes_of(rows.categories[slot], row);
    if (!raw && slot == 0 && wide > 0) to = put(to, static_cast<int32_t>(wide));
    if (!raw && slot >= wide) to = put(to, static_cast<int32_t>(keys.size()));
    for (const uint64_t key : keys) to = style_.key_bytes == 4 ? put(to, static_cast<uint32_t>(key)) : put(to, key);
  }
  if (framed) {
    unsigned sum = 0;
    for (const std::byte* p = payload; p < to; ++p) sum += static_cast<unsigned>(*p);
    to = put(to, static_cast<uint8_t>(sum));
  }
  HCTR_EXPECT(to == records.bytes.data() + begin + bytes, "a record of ", bytes, " bytes");
  records.ends.push_back(records.bytes.size());
}

}  // namespace hctr
