#include "plugins/parquet/arrow_values.h"

#include <limits>

namespace hctr {
namespace {

using arrow::Type;

ParquetType plain_type(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::NA:
      return ParquetType::null;
    case Type::BOOL:
      return ParquetType::boolean;
    case Type::INT8:
      return ParquetType::i8;
    case Type::INT16:
      return ParquetType::i16;
    case Type::INT32:
      return ParquetType::i32;
    case Type::INT64:
      return ParquetType::i64;
    case Type::UINT8:
      return ParquetType::u8;
    case Type::UINT16:
      return ParquetType::u16;
    case Type::UINT32:
      return ParquetType::u32;
    case Type::UINT64:
      return ParquetType::u64;
    case Type::HALF_FLOAT:
      return ParquetType::f16;
    case Type::FLOAT:
      return ParquetType::f32;
    case Type::DOUBLE:
      return ParquetType::f64;
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::BINARY:
    case Type::LARGE_BINARY:
      return ParquetType::text;
    case Type::DICTIONARY: {
      const ParquetType values = plain_type(*static_cast<const arrow::DictionaryType&>(type).value_type());
      return values == ParquetType::text ? values : ParquetType::other;
    }
    default:
      return converted_type(type);
  }
}

/// Copies offsets [count + 1] of any width as 32 bits, relative to the array's first item.
template <class Offset>
arrow::Status copy_offsets(const Offset* from, int64_t count, std::vector<int32_t>& to) {
  to.resize(static_cast<size_t>(count) + 1);
  for (int64_t i = 0; i <= count; ++i) {
    const int64_t at = static_cast<int64_t>(from[i]) - static_cast<int64_t>(from[0]);
    if (at < 0 || at > std::numeric_limits<int32_t>::max())
      return arrow::Status::Invalid("a chunk of a column has more than 2 GiB");
    to[static_cast<size_t>(i)] = static_cast<int32_t>(at);
  }
  return arrow::Status::OK();
}

template <class Texts>
arrow::Status describe_texts(const arrow::Array& array, ParquetValues& values, ValuesOwner& owner) {
  const auto& texts = static_cast<const Texts&>(array);
  ARROW_RETURN_NOT_OK(copy_offsets(texts.raw_value_offsets(), texts.length(), owner.text));
  values.text = owner.text.data();
  values.values = texts.value_data() ? texts.raw_data() + texts.value_offset(0) : nullptr;
  return arrow::Status::OK();
}

/// Copies the text of each element from a dictionary.
arrow::Status describe_dictionary(const arrow::DictionaryArray& array, ParquetValues& values, ValuesOwner& owner) {
  ValuesOwner words_owner;
  ParquetValues words;
  ARROW_RETURN_NOT_OK(describe(array.dictionary(), ParquetForm::value, words, words_owner));
  const auto* bytes = static_cast<const uint8_t*>(words.values);
  arrow::BufferBuilder all;
  owner.text.assign(1, 0);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (!array.IsNull(i)) {
      const int64_t word = array.GetValueIndex(i);
      if (word < 0 || word >= array.dictionary()->length())
        return arrow::Status::Invalid("a value is missing in the dictionary");
      ARROW_RETURN_NOT_OK(all.Append(bytes + words.text[word], words.text[word + 1] - words.text[word]));
    }
    if (all.length() > std::numeric_limits<int32_t>::max())
      return arrow::Status::Invalid("a chunk of a column has more than 2 GiB");
    owner.text.push_back(static_cast<int32_t>(all.length()));
  }
  ARROW_ASSIGN_OR_RAISE(owner.bytes, all.Finish());
  values.text = owner.text.data();
  values.values = owner.bytes->data();
  return arrow::Status::OK();
}

arrow::Status describe_converted(const arrow::Array& array, ParquetForm form, ParquetValues& values,
                                 ValuesOwner& owner) {
  ConvertedValues& converted = owner.converted;
  ARROW_RETURN_NOT_OK(convert(array, form, converted));
  if (form == ParquetForm::number) {
    values.values = converted.numbers.data();
  } else if (form == ParquetForm::integer) {
    values.values = converted.integers.data();
  } else {
    values.values = converted.text.data();
    values.text = converted.ends.data();
  }
  return arrow::Status::OK();
}

arrow::Status describe_items(const arrow::Array& array, ParquetForm form, ParquetValues& values, ValuesOwner& owner) {
  if (converted_type(*array.type()) != ParquetType::other) return describe_converted(array, form, values, owner);
  switch (array.type_id()) {
    case Type::NA:
      return arrow::Status::OK();
    case Type::STRING:
    case Type::BINARY:
      return describe_texts<arrow::BinaryArray>(array, values, owner);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return describe_texts<arrow::LargeBinaryArray>(array, values, owner);
    case Type::DICTIONARY:
      return describe_dictionary(static_cast<const arrow::DictionaryArray&>(array), values, owner);
    case Type::BOOL:
      values.values = array.data()->buffers[1] ? array.data()->buffers[1]->data() : nullptr;
      values.bits_at = array.offset();
      return arrow::Status::OK();
    default: {
      const auto& type = static_cast<const arrow::FixedWidthType&>(*array.type());
      const auto& buffer = array.data()->buffers[1];
      values.values = buffer ? buffer->data() + array.offset() * (type.bit_width() / 8) : nullptr;
      return arrow::Status::OK();
    }
  }
}

/// Sets the validity bits. An array of type null has no validity bitmap, so zeros are created.
void describe_nulls(const arrow::Array& array, const uint8_t*& valid, int64_t& at, ValuesOwner& owner) {
  if (array.type_id() == Type::NA) {
    owner.none_valid.assign(static_cast<size_t>(array.length() + 7) / 8, 0);
    valid = owner.none_valid.data();
  } else if (array.null_count() > 0) {
    valid = array.null_bitmap_data();
    at = array.offset();
  }
}

template <class List>
arrow::Status list_of(const arrow::Array& array, ParquetValues& values, ValuesOwner& owner) {
  const auto& lists = static_cast<const List&>(array);
  ARROW_RETURN_NOT_OK(copy_offsets(lists.raw_value_offsets(), lists.length(), owner.list));
  values.list = owner.list.data();
  owner.items = lists.values()->Slice(lists.value_offset(0), owner.list.back());
  return arrow::Status::OK();
}

arrow::Status fixed_list_of(const arrow::FixedSizeListArray& lists, ParquetValues& values, ValuesOwner& owner) {
  if (lists.length() * lists.value_length() > std::numeric_limits<int32_t>::max())
    return arrow::Status::Invalid("a chunk of a column has more than 2^31 values");
  for (int64_t r = 0; r <= lists.length(); ++r) owner.list.push_back(static_cast<int32_t>(r * lists.value_length()));
  values.list = owner.list.data();
  owner.items = lists.values()->Slice(lists.value_offset(0), owner.list.back());
  return arrow::Status::OK();
}

}  // namespace

ParquetType type_of(const arrow::DataType& type, bool& list) {
  list = type.id() == Type::LIST || type.id() == Type::LARGE_LIST || type.id() == Type::FIXED_SIZE_LIST;
  return plain_type(list ? *static_cast<const arrow::BaseListType&>(type).value_type() : type);
}

arrow::Status describe(const std::shared_ptr<arrow::Array>& array, ParquetForm form, ParquetValues& values,
                       ValuesOwner& owner) {
  owner.array = array;
  values.rows = array->length();
  describe_nulls(*array, values.valid_rows, values.valid_rows_at, owner);
  switch (array->type_id()) {
    case Type::LIST:
      ARROW_RETURN_NOT_OK(list_of<arrow::ListArray>(*array, values, owner));
      break;
    case Type::LARGE_LIST:
      ARROW_RETURN_NOT_OK(list_of<arrow::LargeListArray>(*array, values, owner));
      break;
    case Type::FIXED_SIZE_LIST:
      ARROW_RETURN_NOT_OK(fixed_list_of(static_cast<const arrow::FixedSizeListArray&>(*array), values, owner));
      break;
    default:
      return describe_items(*array, form, values, owner);
  }
  describe_nulls(*owner.items, values.valid_items, values.valid_items_at, owner);
  return describe_items(*owner.items, form, values, owner);
}

std::shared_ptr<arrow::DataType> arrow_type(const ParquetField& field) {
  std::shared_ptr<arrow::DataType> type;
  switch (field.type) {
    case ParquetType::boolean:
      type = arrow::boolean();
      break;
    case ParquetType::i8:
      type = arrow::int8();
      break;
    case ParquetType::i16:
      type = arrow::int16();
      break;
    case ParquetType::i32:
      type = arrow::int32();
      break;
    case ParquetType::i64:
      type = arrow::int64();
      break;
    case ParquetType::u8:
      type = arrow::uint8();
      break;
    case ParquetType::u16:
      type = arrow::uint16();
      break;
    case ParquetType::u32:
      type = arrow::uint32();
      break;
    case ParquetType::u64:
      type = arrow::uint64();
      break;
    case ParquetType::f16:
      type = arrow::float16();
      break;
    case ParquetType::f32:
      type = arrow::float32();
      break;
    case ParquetType::f64:
      type = arrow::float64();
      break;
    case ParquetType::text:
      type = arrow::utf8();
      break;
    default:  // null, and types that are read but never written
      type = arrow::null();
      break;
  }
  return field.list ? arrow::list(arrow::field("element", type, field.nullable)) : type;
}

std::shared_ptr<arrow::Array> arrow_array(const ParquetField& field, const ParquetValues& values) {
  const auto bytes_of = [](const void* from, int64_t count) {
    return arrow::Buffer::Wrap(static_cast<const uint8_t*>(from), static_cast<size_t>(count));
  };
  const auto bits_of = [&](const uint8_t* bits, int64_t count) {
    return bits ? bytes_of(bits, (count + 7) / 8) : nullptr;
  };
  const std::shared_ptr<arrow::DataType> type = arrow_type(field);
  const std::shared_ptr<arrow::DataType> item_type =
      field.list ? static_cast<const arrow::ListType&>(*type).value_type() : type;
  const int64_t items = values.list ? values.list[values.rows] : values.rows;
  std::vector<std::shared_ptr<arrow::Buffer>> buffers = {
      bits_of(field.list ? values.valid_items : values.valid_rows, items)};
  if (field.type == ParquetType::null) {
    buffers = {nullptr};
  } else if (field.type == ParquetType::text) {
    buffers.push_back(bytes_of(values.text, 4 * (items + 1)));
    buffers.push_back(bytes_of(values.values, values.text[items]));
  } else {
    buffers.push_back(
        bytes_of(values.values, (items * static_cast<const arrow::FixedWidthType&>(*item_type).bit_width() + 7) / 8));
  }
  auto data = arrow::ArrayData::Make(item_type, items, std::move(buffers));
  if (!field.list) return arrow::MakeArray(data);
  return arrow::MakeArray(arrow::ArrayData::Make(
      type, values.rows, {bits_of(values.valid_rows, values.rows), bytes_of(values.list, 4 * (values.rows + 1))},
      {data}));
}

}  // namespace hctr
