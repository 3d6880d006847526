#include "prepare/preprocess/preprocess_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/expect.h"
#include "formats/raw/raw_set.h"

namespace hctr {
namespace {

template <class T>
std::byte* put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

/// The values of the row in this column: the items of a list, or one value.
std::span<const uint64_t> codes_of(const ParsedRows::Category& column, size_t row) {
  if (column.ends.empty()) return {&column.codes[row], 1};
  const size_t begin = row == 0 ? 0 : column.ends[row - 1];
  return std::span(column.codes).subspan(begin, column.ends[row] - begin);
}

/// Adds the buckets of I1 to I13, and the crosses C1 x C2 and C3 x C4, if the style has them.
void add_criteo_columns(const CriteoStyle& style, ParsedRows& rows) {
  constexpr double beyond = 0x1p63;
  rows.categories.resize(kCriteoCategories);
  for (const uint32_t number : criteo_columns(style)) {
    if (number <= kCriteoCategories) continue;
    std::vector<uint64_t> codes(rows.rows);
    if (number <= kCriteoCategories + kCriteoIntegers) {
      const std::vector<double>& integers = rows.numbers[number - kCriteoCategories - 1];
      for (size_t row = 0; row < rows.rows; ++row) {
        const double value = integers[row];
        codes[row] = bucket_value(std::isnan(value) ? std::nullopt
                                  : value >= beyond ? std::optional(std::numeric_limits<int64_t>::max())
                                                    : std::optional(static_cast<int64_t>(value)));
      }
    } else {
      const size_t first = number == 40 ? 0 : 2;
      for (size_t row = 0; row < rows.rows; ++row)
        codes[row] = cross_value(rows.categories[first].codes[row], rows.categories[first + 1].codes[row]);
    }
    rows.categories.push_back({.codes = std::move(codes), .ends = {}});
  }
}

/// The columns of a record, in record order, as indices into ParsedRows::categories.
std::vector<size_t> record_columns(const PreprocessOptions& options) {
  std::vector<size_t> order(static_cast<size_t>(options.slots()));
  std::iota(order.begin(), order.end(), size_t{0});
  if (!options.criteo) return order;
  const auto wide = static_cast<size_t>(options.criteo->wide_keys());
  // the last `wide` columns of `order` come first in a record
  std::vector<size_t> record(order.end() - static_cast<ptrdiff_t>(wide), order.end());
  record.insert(record.end(), order.begin(), order.begin() + options.criteo->deep_slots());
  return record;
}

int32_t whole(double value) {
  constexpr double most = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::nearbyint(std::clamp(value, 0.0, most)));
}

}  // namespace

void add_derived_columns(const PreprocessOptions& options, ParsedRows& rows) {
  if (options.criteo) return add_criteo_columns(*options.criteo, rows);
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

RowEncoder::RowEncoder(const PreprocessOptions& options, const FittedColumns& fitted)
    : options_(options),
      fitted_(fitted),
      record_(record_columns(options)),
      wide_(static_cast<size_t>(options.wide_keys())),
      offsets_(static_cast<size_t>(options.slots())) {
  for (const DenseColumn& column : fitted.dense) dense_.emplace_back(options.dense, column);
  if (options.criteo) {
    style_ = options.criteo->norm();
    return;
  }
  const auto wide = static_cast<int64_t>(options.crosses.size());
  style_ = {.label_dim = static_cast<int64_t>(options.table.labels().size()),
            .dense_dim = static_cast<int64_t>(options.table.numbers().size()),
            .slots = options.as_norm() ? options.slots() - wide + (wide > 0 ? 1 : 0) : options.slots(),
            .check = options.as_norm() ? options.check : Check::none,
            .key_bytes = options.key_bytes};
  texts_.resize(options.crosses.size());
  for (size_t place = 0; place < options.table.categories().size(); ++place) {
    lists_ |= options.table.is_list(place);
    texts_.push_back(options.table.category_kind(place) != ColumnKind::hex && options.modulo == 0);
  }
  if (!options.as_norm()) return;
  for (size_t slot = 1; slot < offsets_.size(); ++slot)
    offsets_[slot] = offsets_[slot - 1] + fitted.slot_sizes[slot - 1];
}

void RowEncoder::to_criteo_keys(uint32_t column, size_t slot, std::span<uint64_t> codes) const {
  for (uint64_t& code : codes) {
    if (options_.passes == 2 && fitted_.vocabularies[slot].id(code) == kRare) code = kRare;
    code = static_cast<uint64_t>(criteo_key(*options_.criteo, {column, code}));
  }
}

void RowEncoder::to_keys(ParsedRows& rows) const {
  const std::vector<uint32_t> columns = options_.criteo ? criteo_columns(*options_.criteo) : std::vector<uint32_t>();
  for (size_t slot = 0; slot < rows.categories.size(); ++slot) {
    ParsedRows::Category& column = rows.categories[slot];
    const std::span<uint64_t> codes(column.codes.data(), column.ends.empty() ? rows.rows : column.codes.size());
    if (options_.criteo) {
      to_criteo_keys(columns[slot], slot, codes);
      continue;
    }
    const auto offset = static_cast<uint64_t>(offsets_[slot]);
    if (options_.passes == 2) {
      fitted_.vocabularies[slot].to_ids(codes);
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

size_t RowEncoder::keys_of(const ParsedRows& rows, size_t row) const {
  if (!lists_) return record_.size();
  size_t keys = 0;
  for (const ParsedRows::Category& column : rows.categories) keys += codes_of(column, row).size();
  return keys;
}

size_t RowEncoder::bytes_of(const ParsedRows& rows, size_t row) const {
  const size_t keys = keys_of(rows, row);
  if (options_.format != kRawFormat) return norm_record_bytes(style_, keys);
  return 4 * (static_cast<size_t>(style_.label_dim + style_.dense_dim) + keys);
}

bool RowEncoder::append(const ParsedRows& rows, size_t row, EncodedRecords& records) const {
  const size_t before = records.bytes.size();
  const bool finite =
      options_.format == kRawFormat ? append_raw(rows, row, records.bytes) : append_norm(rows, row, records.bytes);
  if (finite)
    records.ends.push_back(records.bytes.size());
  else
    records.bytes.resize(before);
  return finite;
}

std::string RowEncoder::problem_of(const ParsedRows& rows, size_t row) const {
  for (size_t i = 0; i < dense_.size(); ++i)
    if (const double value = rows.numbers[i][row]; !std::isfinite(dense_[i](value)))
      return cat("column ", options_.table.numbers()[i], ": ",
                 std::isnan(value) ? std::string("the value that replaces a missing one") : cat(value),
                 " is not a finite float after scaling by the statistics of the training rows");
  return "";
}

bool RowEncoder::append_norm(const ParsedRows& rows, size_t row, std::vector<std::byte>& bytes) const {
  NormRecordEncoder record(style_, keys_of(rows, row), bytes);
  for (const auto& column : rows.labels) record.number(column[row]);
  bool finite = true;
  for (size_t i = 0; i < static_cast<size_t>(style_.dense_dim); ++i) {
    const float value = dense_[i](rows.numbers[i][row]);
    finite &= std::isfinite(value);
    record.number(value);
  }
  for (size_t i = 0; i < record_.size(); ++i) {
    const auto keys = codes_of(rows.categories[record_[i]], row);
    if (i == 0 && wide_ > 0) record.slot(static_cast<int32_t>(wide_));
    if (i >= wide_) record.slot(static_cast<int32_t>(keys.size()));
    for (const uint64_t key : keys) record.key(key);
  }
  record.finish();
  return finite;
}

bool RowEncoder::append_raw(const ParsedRows& rows, size_t row, std::vector<std::byte>& bytes) const {
  const size_t begin = bytes.size();
  bytes.resize(begin + bytes_of(rows, row));
  std::byte* to = bytes.data() + begin;
  const bool floats = options_.float_label_dense;
  for (const auto& column : rows.labels)
    to = floats ? put(to, column[row]) : put(to, static_cast<int32_t>(column[row]));
  bool finite = true;
  for (size_t i = 0; i < rows.numbers.size(); ++i) {
    const double value = rows.numbers[i][row];
    const float scaled = floats ? dense_[i](value) : 0;
    finite &= std::isfinite(scaled);
    to = floats ? put(to, scaled) : put(to, whole(std::isnan(value) ? options_.dense.fill : value));
  }
  for (const ParsedRows::Category& column : rows.categories)
    for (const uint64_t key : codes_of(column, row)) to = put(to, static_cast<uint32_t>(key));
  HCTR_EXPECT(to == bytes.data() + bytes.size(), "a Raw record of ", bytes.size() - begin, " bytes");
  return finite;
}

}  // namespace hctr
