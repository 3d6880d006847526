#include "formats/parquet/parquet_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/expect.h"
#include "formats/data/cell_notation.h"
#include "formats/data/one_hot.h"
#include "formats/data/slot_values.h"
#include "formats/data/text_values.h"
#include "formats/parquet/parquet_values.h"

namespace hctr {

template <class Describe>
void ParquetRows::bad(int64_t row, const ParquetField* field, const Describe& describe) {
  if (!bad_[static_cast<size_t>(row)]) ++bad_count_;
  bad_[static_cast<size_t>(row)] = 1;
  const bool named = block_->names_bad && !problems_.contains(row), first = first_bad_ < 0 || row < first_bad_;
  if (!named && !first) return;
  const std::string problem = field ? cat("column '", field->name, "' (", field->said, "): ", describe()) : describe();
  if (named) problems_[row] = problem;
  if (!first) return;
  first_bad_ = row;
  first_problem_ = problem;
}

void ParquetRows::start(int64_t rows, SampleBlock& block) {
  block_ = &block;
  rows_ = rows;
  keys_ = added_ = 0;
  many_ = false;
  bad_.assign(static_cast<size_t>(rows), 0);
  bad_count_ = 0;
  first_bad_ = -1;
  problems_.clear();
  kept_.resize(plan_.kept.size());
  for (KeptCells& column : kept_) column.clear();
  grow(block.label, rows * plan_.shape.label_dim);
  grow(block.dense, rows * plan_.shape.dense_dim);
  if (block.wants_exact) grow(block.exact, rows * plan_.shape.dense_dim);
  const auto slots = static_cast<int64_t>(plan_.slots.size());
  grow(block.offsets, slots * rows + 1);
  grow(block.keys, (slots + 1) * rows);  // add_slot() needs capacity for one key per bag
}

void ParquetRows::add(size_t column, const ParquetField& field, const ParquetValues& values) {
  HCTR_EXPECT(added_ + values.rows <= rows_, "column '", field.name, "' has ", added_ + values.rows,
              " rows, but other columns have ", rows_);
  const auto labels = plan_.labels.size(), dense = plan_.dense.size();
  const auto place = [&](auto& to, size_t at, size_t stride) {
    return to.data() + static_cast<size_t>(added_) * stride + at;
  };
  if (column < labels)
    add_numbers(plan_.labels[column], field, values,
                {.label = true,
                 .to = place(block_->label, column, labels),
                 .exact = nullptr,
                 .stride = static_cast<int64_t>(labels)});
  else if (column < labels + dense)
    add_numbers(plan_.dense[column - labels], field, values,
                {.label = false,
                 .to = place(block_->dense, column - labels, dense),
                 .exact = block_->wants_exact ? place(block_->exact, column - labels, dense) : nullptr,
                 .stride = static_cast<int64_t>(dense)});
  else if (column < labels + dense + plan_.slots.size())
    add_slot(column - labels - dense, field, values);
  else
    for (int64_t r = 0; r < values.rows; ++r) {
      KeptCells& cells = kept_[column - labels - dense - plan_.slots.size()];
      append_text(field.type, values, r, cells.text);
      cells.ends.push_back(cells.text.size());
    }
  added_ += values.rows;
  if (added_ == rows_) added_ = 0;
}

void ParquetRows::add_missing(size_t column) {
  const size_t labels = plan_.labels.size();
  if (column < labels) {
    for (size_t r = 0; r < static_cast<size_t>(rows_); ++r)
      block_->label[r * labels + column] = *plan_.labels[column].without_column;
    return;
  }
  const auto slot = static_cast<int64_t>(column - labels - plan_.dense.size());
  std::fill_n(block_->offsets.begin() + slot * rows_, rows_, static_cast<int32_t>(keys_));
  many_ = true;
}

std::string_view ParquetRows::text_of(const ParquetField& field, const ParquetValues& values, int64_t i) const {
  const std::string_view text = text_at(values, i);
  return field.formatted ? text : value_of(text);
}

std::string_view ParquetRows::value_of(std::string_view text) const {
  if (plan_.trim) text = without_blanks(text);
  const auto& missing = plan_.missing;
  return missing.empty() || std::find(missing.begin(), missing.end(), text) == missing.end() ? text
                                                                                             : std::string_view();
}

/// The message about a missing value without a default.
std::string ParquetRows::why_missing(const ParquetField& field, bool null, const char* advice) const {
  const char* is = null || field.type == ParquetType::null ? "is null"
                   : is_float(field.type)                  ? "is NaN, which counts as missing"
                   : plan_.missing.empty()                 ? "is an empty text"
                                                           : "is an empty text, or one of \"missing\"";
  return cat(is, "; ", advice);
}

void ParquetRows::add_numbers(const ParquetNumber& number, const ParquetField& field, const ParquetValues& values,
                              const NumberColumn& column) {
  float* const to = column.to;
  double* const exact = column.exact;
  const int64_t stride = column.stride;
  const DenseRule& rule = number.rule;
  const Positive& positive = number.label.positive;
  // fast path; if some value is not finite, the loop below reports it
  if (!rule.transform.any() && !positive.given() && !exact && !values.valid_rows) {
    float zero = 0;
    const bool plain = with_values(field.type, values.values, [&](const auto* from) {
      for (int64_t r = 0; r < values.rows; ++r) {
        const auto value = static_cast<float>(from[r]);
        to[r * stride] = value;
        zero += value * 0.0f;
      }
    });
    if (plain && zero == 0) return;
  }
  const bool as_text = field.type == ParquetType::text || !positive.texts.empty();
  char memory[24];
  for (int64_t r = 0; r < values.rows; ++r) {
    float& value = to[r * stride];
    value = 0;
    const bool null = !is_valid(values, r);
    double found = 0;
    std::string_view text;
    if (!null && as_text)
      text = field.type == ParquetType::text ? text_of(field, values, r) : digits_at(field.type, values, r, memory);
    else if (!null)
      found = number_at(field.type, values, r);
    if (null || (as_text ? text.empty() : std::isnan(found))) {
      if (exact) exact[r * stride] = static_cast<double>(rule.fallback.value_or(0.0f));
      if (rule.fallback)
        value = *rule.fallback;
      else
        bad(added_ + r, &field, [&] {
          return why_missing(field, null,
                             column.label
                                 ? "a label has no default: remove such rows, or set \"bad_records\": \"skip\""
                                 : "set \"default\" or \"default_dense\" of \"parquet\" to replace such values");
        });
      continue;
    }
    if (!as_text) {
      found = label_of(number.label, found);
    } else if (!label_of(number.label, text, found)) {
      bad(added_ + r, &field, [&] {
        const NumberNotation notation = number.label.notation();
        return cat("expected ", describe(notation), ", found '", text.substr(0, 40), "'",
                   notation.plain() ? number_hint(text) : std::string());
      });
      continue;
    }
    if (exact) exact[r * stride] = transformed(rule, found);
    if (!transformed(rule, found, value))
      bad(added_ + r, &field, [&] { return cat("the value ", found, " is not a finite float"); });
  }
}

/// The message about a float that is not an integer id.
std::string ParquetRows::why_no_id(ParquetType type, double number) {
  char digits[32];
  const bool whole = number == std::floor(number) && std::isfinite(number);
  const char* const end = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 17).ptr;
  const std::string_view found(digits, static_cast<size_t>(end - digits));
  if (!whole) return cat("expected an integer id, found ", number);
  return cat("the id ", found, " is ambiguous: the column's float type cannot represent all integers from ",
             static_cast<int64_t>(whole_below(type)), " on; store ids as integers or text");
}

/// Fast path: each row has one integer, which is its key. Returns false if some key is invalid.
template <class T>
bool ParquetRows::add_plain_keys(const ParquetSlot& slot, const T* values, int64_t rows) {
  int64_t* to = block_->keys.data() + keys_;
  const auto offset = static_cast<uint64_t>(slot.offset);
  uint64_t all = 0;  // bitwise OR of all values and keys, to detect negative ones
  uint64_t most = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const auto value = static_cast<uint64_t>(static_cast<int64_t>(values[r])), key = value + offset;
    all |= value | key;
    most = std::max(most, key);
    to[r] = static_cast<int64_t>(key);
  }
  return (!plan_.sized || static_cast<int64_t>(all) >= 0) && most <= plan_.most_key;
}

/// Adds the keys of a slot's values to the block, row by row.
class ParquetRows::SlotKeys {
 public:
  SlotKeys(ParquetRows& to, const ParquetSlot& slot, const ParquetField& field, KeyRule keys)
      : to_(to), rule_(slot.rule), field_(field), offset_(slot.offset), keys_(keys) {}

  void add_key(int64_t row, std::string_view value) {
    int64_t key = 0;
    bool right = key_of(rule_, keys_, value, key);
    const bool sized = keys_ == KeyRule::number && to_.plan_.sized;  // the key must stay within the slot's range
    if (right && sized) right = key >= 0 && key <= std::numeric_limits<int64_t>::max() - offset_;
    if (!right)
      return to_.bad(row, &field_, [&] {
        return cat("expected ",
                   sized ? "an integer of at least 0, because \"slot_size_array\" is set" : values_with_keys(keys_),
                   ", found '", value.substr(0, 40), "'",
                   field_.formatted ? "; \"keys\": \"hash\" accepts any decimal, date or time" : "");
      });
    if (keys_ == KeyRule::number) key += offset_;
    if (static_cast<uint64_t>(key) > to_.plan_.most_key)
      return to_.bad(row, &field_, [&] {
        return cat("'", value.substr(0, 40), "' gives the key ", key,
                   ", but \"input_key_type\" \"I32\" allows only 0 to ", to_.plan_.most_key,
                   ": set \"input_key_type\" to \"I64\"");
      });
    to_.block_->keys[static_cast<size_t>(to_.keys_++)] = key;
  }
  /// Adds the values of a text with several values. `left`: at most this many rows, including row `row`, still need
  /// keys. Reserves memory for the keys of the text and for one more key of each of these rows.
  void add_values(int64_t row, std::string_view cell, int64_t left) {
    grow(to_.block_->keys, to_.keys_ + static_cast<int64_t>(cell.size()) + left);
    const char* problem = nullptr;
    const int64_t before = to_.keys_;
    const bool right = for_each_slot_value(rule_, cell, problem, [&](std::string_view value) {
      value = to_.value_of(value);
      if (!value.empty()) add_key(row, value);
      return to_.keys_ - before <= to_.plan_.shape.max_keys();
    });
    if (!right && problem && *problem)
      to_.bad(row, &field_,
              [&] { return cat("expected a list in brackets, found '", cell.substr(0, 40), "': ", problem); });
  }
  void add_default(int64_t row, bool null) {
    if (!rule_.fallback)
      to_.bad(row, &field_, [&] {
        return to_.why_missing(field_, null,
                               "set \"default\" or \"default_key\" of \"parquet\" to replace such values");
      });
    else if (!rule_.fallback->empty())
      add_key(row, *rule_.fallback);
  }

 private:
  ParquetRows& to_;
  const SlotRule& rule_;
  const ParquetField& field_;
  const int64_t offset_;
  const KeyRule keys_;
};

void ParquetRows::add_slot(size_t at, const ParquetField& field, const ParquetValues& values) {
  const ParquetSlot& slot = plan_.slots[at];
  const SlotRule& rule = slot.rule;
  const bool text = field.type == ParquetType::text;
  const KeyRule keys = rule.keys.value_or(text ? KeyRule::hash : KeyRule::number);
  const int64_t rows = values.rows, items = values.list ? int64_t{values.list[rows]} - values.list[0] : rows;
  if (items < 0 || keys_ + items + rows > std::numeric_limits<int32_t>::max())
    throw Error(Kind::data, cat("column '", field.name, "': more than 2^31 keys in ", rows, " rows"));
  grow(block_->keys, keys_ + items + rows);
  int32_t* offsets = block_->offsets.data() + static_cast<int64_t>(at) * rows_ + added_;
  if (!values.list && !values.valid_rows && !text && keys == KeyRule::number) {
    bool right = false;
    with_values(field.type, values.values, [&](const auto* from) {
      if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(*from)>>) right = add_plain_keys(slot, from, rows);
    });
    if (right) {
      for (int64_t r = 0; r < rows; ++r) offsets[r] = static_cast<int32_t>(keys_ + r);
      keys_ += rows;
      return;
    }
  }
  char memory[24];
  SlotKeys to(*this, slot, field, keys);
  for (int64_t r = 0; r < rows; ++r) {
    offsets[r] = static_cast<int32_t>(keys_);
    if (!is_valid(values, r)) {
      to.add_default(added_ + r, true);
      continue;
    }
    const int64_t begin = values.list ? values.list[r] : r, end = values.list ? values.list[r + 1] : r + 1;
    if (end - begin > plan_.shape.max_keys()) {  // too many keys, so reject the row without parsing them
      bad(added_ + r, &field, [&] {
        return cat("a list has ", end - begin, " values, but the slots of a sample may have at most ",
                   plan_.shape.max_keys(), " keys in total");
      });
      continue;
    }
    for (int64_t i = begin; i < end; ++i) {
      const bool null = !is_valid_item(values, i);
      const std::string_view value = null   ? std::string_view()
                                     : text ? text_of(field, values, i)
                                            : digits_at(field.type, values, i, memory);
      if (value.empty() && !null && !text && has_item(field.type, values, i))
        bad(added_ + r, &field, [&] { return why_no_id(field.type, number_at(field.type, values, i)); });
      else if (value.empty())
        to.add_default(added_ + r, null);
      else if (text && rule.several_values())
        to.add_values(added_ + r, value, rows);
      else
        to.add_key(added_ + r, value);
    }
  }
  if (keys_ > std::numeric_limits<int32_t>::max())
    throw Error(Kind::data, cat("column '", field.name, "': more than 2^31 keys in ", rows, " rows"));
  many_ = true;
  if (added_ + rows == rows_) check_limits(at, field);
}

/// Checks the key limit of the slot that was added last.
void ParquetRows::check_limits(size_t at, const ParquetField& field) {
  int64_t first = 0;
  size_t i = 0;
  while (static_cast<int64_t>(at) >= first + plan_.shape.inputs[i].slots) first += plan_.shape.inputs[i++].slots;
  const RecordShape::Input& input = plan_.shape.inputs[i];
  const int64_t slot = static_cast<int64_t>(at) - first;
  const int32_t* offsets = block_->offsets.data() + static_cast<int64_t>(at) * rows_;
  for (int64_t r = 0; r < rows_; ++r) {
    const int64_t nnz = (r + 1 < rows_ ? offsets[r + 1] : keys_) - offsets[r];
    if (nnz > input.most_of(slot)) bad(r, &field, [&] { return input.excess(first, slot, nnz, nnz); });
  }
}

/// Checks the limits on keys per sample of each input.
void ParquetRows::check_inputs() {
  int64_t first = 0;
  for (const RecordShape::Input& input : plan_.shape.inputs) {
    for (int64_t r = 0; r < rows_ && (many_ || input.max_keys < input.slots); ++r) {
      int64_t keys = 0;
      for (int64_t s = first; s < first + input.slots; ++s) {
        const int32_t* bag = block_->offsets.data() + s * rows_ + r;
        keys += bag[1] - bag[0];
      }
      if (keys > input.max_keys) bad(r, nullptr, [&] { return input.excess(first, input.slots - 1, 0, keys); });
    }
    first += input.slots;
  }
}

void ParquetRows::leave_out_bad_rows() {
  const auto slots = static_cast<int64_t>(plan_.slots.size()), rows = rows_;
  const auto keep_numbers = [&](auto& values, int64_t dim) {
    auto* to = values.data();
    for (int64_t r = 0; r < rows; ++r)
      if (!bad_[static_cast<size_t>(r)]) to = std::copy_n(values.data() + r * dim, dim, to);
  };
  keep_numbers(block_->label, plan_.shape.label_dim);
  keep_numbers(block_->dense, plan_.shape.dense_dim);
  if (block_->wants_exact) keep_numbers(block_->exact, plan_.shape.dense_dim);
  int32_t* offsets = block_->offsets.data();
  int64_t* keys = block_->keys.data();
  int64_t bag = 0;
  int32_t at = 0;  // compacts in place, because writes never overtake reads
  for (int64_t s = 0; s < slots; ++s)
    for (int64_t r = 0; r < rows; ++r) {
      if (bad_[static_cast<size_t>(r)]) continue;
      const int32_t begin = offsets[s * rows + r], end = offsets[s * rows + r + 1];
      offsets[bag++] = at;
      for (int32_t k = begin; k < end; ++k) keys[at++] = keys[k];
    }
  offsets[bag] = at;
  rows_ -= bad_count_;
}

/// Copies the kept cells of good rows to the block, row by row.
void ParquetRows::pass_on_kept_cells() {
  block_->kept.clear();
  if (kept_.empty()) return;
  for (size_t r = 0; r < bad_.size(); ++r)
    if (!bad_[r])
      for (const KeptCells& column : kept_) block_->kept.add(column.cell(r));
}

BadRecords ParquetRows::finish(const std::function<std::string(int64_t row)>& where) {
  block_->offsets[static_cast<size_t>(static_cast<int64_t>(plan_.slots.size()) * rows_)] = static_cast<int32_t>(keys_);
  check_inputs();
  pass_on_kept_cells();
  BadRecords found;
  if (bad_count_ > 0) {
    found.add_flagged(bad_, [&] { return cat(where(first_bad_), ": ", first_problem_); });
    for (const auto& [row, problem] : problems_) found.records.push_back({.record = row, .cause = problem});
    leave_out_bad_rows();
  }
  block_->rows = rows_;
  block_->one_hot = !many_;
  return found;
}

}  // namespace hctr
