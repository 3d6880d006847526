#include "formats/parquet/memory_column.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expect.h"
#include "formats/parquet/parquet_file.h"

namespace hctr {
namespace {

/// An Arrow type, parsed from its format string.
struct MemoryType {
  ParquetType type = ParquetType::other;
  size_t width = 0;                               // bytes per number
  enum { none, small, large, view } text = none;  // storage of texts
  double seconds = 0;                             // seconds per unit of a date or time
};

double unit_seconds(char unit) { return unit == 's' ? 1 : unit == 'm' ? 1e-3 : unit == 'u' ? 1e-6 : 1e-9; }

MemoryType memory_type(std::string_view format) {
  using enum ParquetType;
  static constexpr struct {
    char letter;
    ParquetType type;
    size_t width;
  } kNumbers[] = {{'c', i8, 1},  {'C', u8, 1},  {'s', i16, 2}, {'S', u16, 2}, {'i', i32, 4}, {'I', u32, 4},
                  {'l', i64, 8}, {'L', u64, 8}, {'e', f16, 2}, {'f', f32, 4}, {'g', f64, 8}};
  if (format == "n") return {null};
  if (format == "b") return {boolean};
  if (format == "u" || format == "z") return {text, 0, MemoryType::small};
  if (format == "U" || format == "Z") return {text, 0, MemoryType::large};
  if (format == "vu" || format == "vz") return {text, 0, MemoryType::view};
  if (format == "tdD") return {date, 4, MemoryType::none, 86400};
  if (format == "tdm") return {date, 8, MemoryType::none, 1e-3};
  if (format.starts_with("ts") && format.size() > 2) return {timestamp, 8, MemoryType::none, unit_seconds(format[2])};
  for (const auto& number : kNumbers)
    if (format.size() == 1 && format[0] == number.letter) return {number.type, number.width};
  return {};
}

bool is_list(std::string_view format) { return format == "+l" || format == "+L"; }

bool bit_at(const void* bits, int64_t at) { return (static_cast<const uint8_t*>(bits)[at >> 3] >> (at & 7)) & 1; }

template <class T>
const T* buffer(const ArrowArray& array, int index) {
  return static_cast<const T*>(array.buffers[index]);
}

bool has_nulls(const ArrowArray& array) { return array.null_count != 0 && array.n_buffers > 0 && array.buffers[0]; }

/// Item i of a text array.
std::string_view text_of(const MemoryType& type, const ArrowArray& array, int64_t i) {
  i += array.offset;
  if (type.text == MemoryType::small) {
    const auto* ends = buffer<int32_t>(array, 1);
    return {buffer<char>(array, 2) + ends[i], static_cast<size_t>(ends[i + 1] - ends[i])};
  }
  if (type.text == MemoryType::large) {
    const auto* ends = buffer<int64_t>(array, 1);
    return {buffer<char>(array, 2) + ends[i], static_cast<size_t>(ends[i + 1] - ends[i])};
  }
  // A view has 16 bytes. The first 4 are the length. A text of up to 12 bytes follows directly. For a longer text, its
  // prefix, buffer index and offset follow.
  const auto* view = buffer<char>(array, 1) + 16 * i;
  int32_t size = 0, of = 0, at = 0;
  std::memcpy(&size, view, 4);
  if (size <= 12) return {view + 4, static_cast<size_t>(size)};
  std::memcpy(&of, view + 8, 4);
  std::memcpy(&at, view + 12, 4);
  return {buffer<char>(array, 2 + of) + at, static_cast<size_t>(size)};
}

/// The dictionary index of row i; negative if null.
int64_t index_at(const MemoryType& type, const ArrowArray& array, int64_t i) {
  i += array.offset;
  if (has_nulls(array) && !bit_at(array.buffers[0], i)) return -1;
  switch (type.type) {
    case ParquetType::i8:
      return buffer<int8_t>(array, 1)[i];
    case ParquetType::u8:
      return buffer<uint8_t>(array, 1)[i];
    case ParquetType::i16:
      return buffer<int16_t>(array, 1)[i];
    case ParquetType::u16:
      return buffer<uint16_t>(array, 1)[i];
    case ParquetType::i32:
      return buffer<int32_t>(array, 1)[i];
    case ParquetType::u32:
      return buffer<uint32_t>(array, 1)[i];
    default:
      return buffer<int64_t>(array, 1)[i];
  }
}

/// Memory for values that must be converted, because the table stores them in another form.
struct OwnValues {
  std::vector<std::byte> values;
  std::vector<int32_t> ends, list;
  std::vector<uint8_t> valid;

  void add_text(std::string_view text) {
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    values.insert(values.end(), from, from + text.size());
    ends.push_back(static_cast<int32_t>(values.size()));
  }
};

class MemoryColumn : public ParquetColumn {
 public:
  MemoryColumn(const ArrowSchema& schema, const ArrowArray& array, int64_t first, int64_t rows, ParquetForm form)
      : schema_(schema), array_(array), row_(first), end_(first + rows), form_(form) {}

  const char* read(ParquetValues& values, void*& owner) override try {
    values = {};
    values.rows = std::min(end_ - row_, kParquetPieceRows);
    auto own = std::make_unique<OwnValues>();
    bool owned = false;
    const std::string_view format = schema_.format;
    set_valid(array_, row_, values.valid_rows, values.valid_rows_at);
    if (schema_.dictionary) {
      look_up(values, *own);
      owned = true;
    } else if (is_list(format)) {
      owned = read_list(format == "+L", values, *own);
    } else {
      owned = read_items(memory_type(format), array_, row_, values.rows, values, *own);
    }
    row_ += values.rows;
    owner = owned ? own.release() : nullptr;
    return problem_.empty() ? nullptr : problem_.c_str();
  } catch (const std::exception& error) {
    problem_ = error.what();
    return problem_.c_str();
  }

 private:
  static void set_valid(const ArrowArray& array, int64_t first, const uint8_t*& bits, int64_t& at) {
    if (!has_nulls(array)) return;
    bits = static_cast<const uint8_t*>(array.buffers[0]);
    at = array.offset + first;
  }

  /// Reads items [first, first + count) of an array. Returns whether `own` contains some of the values.
  bool read_items(const MemoryType& type, const ArrowArray& array, int64_t first, int64_t count, ParquetValues& values,
                  OwnValues& own) {
    const int64_t at = array.offset + first;
    if (type.seconds != 0) return read_times(type, array, first, count, values, own);
    if (type.type == ParquetType::null) {
      own.valid.assign(static_cast<size_t>(count) / 8 + 1, 0);
      (values.list ? values.valid_items : values.valid_rows) = own.valid.data();
      (values.list ? values.valid_items_at : values.valid_rows_at) = 0;
      return true;
    }
    if (type.type == ParquetType::boolean) {
      values.values = array.buffers[1];
      values.bits_at = at;
      return false;
    }
    if (type.text == MemoryType::none) {
      values.values = buffer<std::byte>(array, 1) + static_cast<size_t>(at) * type.width;
      return false;
    }
    if (type.text == MemoryType::small) {
      static const int32_t kNone[1] = {0};
      values.values = array.buffers[2];
      // an empty text array may lack the buffer of ends
      values.text = array.buffers[1] ? buffer<int32_t>(array, 1) + at : kNone;
      return false;
    }
    own.ends.reserve(static_cast<size_t>(count) + 1);
    if (type.text == MemoryType::large && count > 0) {
      const auto* ends = buffer<int64_t>(array, 1) + at;
      if (ends[count] - ends[0] > std::numeric_limits<int32_t>::max())
        throw Error(Kind::data, "8192 texts exceed 2 GiB");
      for (int64_t i = 0; i <= count; ++i) own.ends.push_back(static_cast<int32_t>(ends[i] - ends[0]));
      values.values = buffer<char>(array, 2) + ends[0];
    } else {
      own.ends.push_back(0);
      for (int64_t i = 0; i < count; ++i)
        own.add_text(has_nulls(array) && !bit_at(array.buffers[0], at + i) ? "" : text_of(type, array, first + i));
      values.values = own.values.data();
    }
    values.text = own.ends.data();
    return true;
  }

  bool read_times(const MemoryType& type, const ArrowArray& array, int64_t first, int64_t count, ParquetValues& values,
                  OwnValues& own) {
    if (form_ != ParquetForm::number)
      throw Error(Kind::data,
                  "dates and times of tables in memory can only be numbers; for a slot or a positive label convert "
                  "the column to text, for example with dt.strftime('%Y-%m-%d')");
    own.values.resize(static_cast<size_t>(count) * sizeof(double));
    auto* to = reinterpret_cast<double*>(own.values.data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = array.offset + first + i;
      const double units = type.width == 4 ? static_cast<double>(buffer<int32_t>(array, 1)[at])
                                           : static_cast<double>(buffer<int64_t>(array, 1)[at]);
      to[i] = type.seconds < 1 ? units / (1 / type.seconds) : units * type.seconds;
    }
    values.values = to;
    return true;
  }

  /// Reads rows of lists. Item indices are relative to the first item of the piece.
  bool read_list(bool large, ParquetValues& values, OwnValues& own) {
    const int64_t at = array_.offset + row_;
    const auto end_of = [&](int64_t r) {
      return large ? buffer<int64_t>(array_, 1)[at + r] : int64_t{buffer<int32_t>(array_, 1)[at + r]};
    };
    const int64_t first = end_of(0);
    for (int64_t r = 0; r <= values.rows; ++r) own.list.push_back(static_cast<int32_t>(end_of(r) - first));
    values.list = own.list.data();
    const ArrowArray& items = *array_.children[0];
    set_valid(items, first, values.valid_items, values.valid_items_at);
    read_items(memory_type(schema_.children[0]->format), items, first, own.list.back(), values, own);
    return true;
  }

  /// Replaces dictionary indices by their values.
  void look_up(ParquetValues& values, OwnValues& own) {
    const MemoryType index = memory_type(schema_.format), type = memory_type(schema_.dictionary->format);
    const ArrowArray& words = *array_.dictionary;
    own.valid.assign(static_cast<size_t>(values.rows) / 8 + 1, 0);
    if (type.text != MemoryType::none) own.ends.push_back(0);
    own.values.reserve(static_cast<size_t>(values.rows) * std::max<size_t>(type.width, 8));
    for (int64_t r = 0; r < values.rows; ++r) {
      const int64_t i = index_at(index, array_, row_ + r);
      const bool there = i >= 0 && !(has_nulls(words) && !bit_at(words.buffers[0], words.offset + i));
      if (i >= words.length)
        throw Error(Kind::data, cat("a code is ", i, ", but there are only ", words.length, " categories"));
      if (there) own.valid[static_cast<size_t>(r >> 3)] |= static_cast<uint8_t>(1 << (r & 7));
      if (type.text != MemoryType::none) {
        own.add_text(there ? text_of(type, words, i) : std::string_view());
        continue;
      }
      own.values.resize(own.values.size() + type.width);
      if (there)
        std::memcpy(own.values.data() + own.values.size() - type.width,
                    buffer<std::byte>(words, 1) + static_cast<size_t>(words.offset + i) * type.width, type.width);
    }
    values.valid_rows = own.valid.data();
    values.valid_rows_at = 0;
    values.values = own.values.data();
    values.text = type.text != MemoryType::none ? own.ends.data() : nullptr;
  }

  const ArrowSchema& schema_;
  const ArrowArray& array_;
  int64_t row_, end_;
  ParquetForm form_;
  std::string problem_;
};

/// The name of a type for messages.
const char* said_of(ParquetType type, const char* format) {
  static constexpr const char* kWords[] = {"bool",    "int8",    "int16",   "int32",     "int64",   "uint8", "uint16",
                                           "uint32",  "uint64",  "float16", "float32",   "float64", "text",  "nothing",
                                           "decimal", "decimal", "date",    "timestamp", "time",    nullptr};
  const char* word = kWords[static_cast<int>(type)];
  return word ? word : format;
}

}  // namespace

ParquetField memory_field(const ArrowSchema& schema) {
  ParquetField field{.name = schema.name ? schema.name : "", .type = {}, .list = is_list(schema.format), .said = ""};
  const ArrowSchema& items = field.list && schema.n_children == 1 ? *schema.children[0] : schema;
  const ArrowSchema& values = items.dictionary ? *items.dictionary : items;
  field.type = memory_type(values.format).type;
  // Unsupported: lists of categories, and categories that are neither plain numbers nor texts.
  if (items.dictionary && (field.list || memory_type(values.format).seconds != 0 ||
                           field.type == ParquetType::boolean || field.type == ParquetType::null))
    field.type = ParquetType::other;
  field.said = said_of(field.type, values.format);
  return field;
}

ParquetColumn* new_memory_column(const ArrowSchema& schema, const ArrowArray& array, int64_t first, int64_t rows,
                                 ParquetForm form) {
  return new MemoryColumn(schema, array, first, rows, form);
}

void drop_memory_values(void* owner) { delete static_cast<OwnValues*>(owner); }

}  // namespace hctr
