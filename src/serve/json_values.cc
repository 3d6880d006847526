#include "serve/json_values.h"

#include <limits>
#include <utility>

#include "serve/serve_status.h"

namespace hctr::serve {
namespace {

template <class T>
void append_number(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

[[noreturn]] void refuse_value(size_t index, Datatype type, const std::string& value) {
  throw Refusal::invalid("element ", index, " is ", value, ", which is not a value of type ", word_of(type));
}

std::string text_of_value(const JsonValues::Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return cat(*integer);
  if (const auto* large = std::get_if<uint64_t>(&value)) return cat(*large);
  if (const auto* fraction = std::get_if<JsonValues::Fraction>(&value)) return cat(fraction->value);
  const auto& text = std::get<std::string>(value);
  return cat("the text '", text.substr(0, 40), text.size() > 40 ? "..." : "", "'");
}

template <class T>
void append_integer(std::string& to, const JsonValues::Value& value, Datatype type, size_t index) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    if (std::in_range<T>(*integer)) return append_number(to, static_cast<T>(*integer));
  } else if (const auto* large = std::get_if<uint64_t>(&value)) {
    if (std::in_range<T>(*large)) return append_number(to, static_cast<T>(*large));
  }
  refuse_value(index, type, text_of_value(value));
}

double number_of(const JsonValues::Value& value, Datatype type, size_t index) {
  if (const auto* fraction = std::get_if<JsonValues::Fraction>(&value)) return fraction->value;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* large = std::get_if<uint64_t>(&value)) return static_cast<double>(*large);
  refuse_value(index, type, text_of_value(value));
}

}  // namespace

void JsonValues::add(Value value) {
  if (type_)
    encode(value);
  else
    waiting_.push_back(std::move(value));
  ++count_;
}

void JsonValues::set_type(Datatype type) {
  type_ = type;
  const std::vector<Value> waiting = std::exchange(waiting_, {});
  count_ = 0;
  for (const Value& value : waiting) {
    encode(value);
    ++count_;
  }
}

void JsonValues::encode(const Value& value) {
  switch (*type_) {
    case Datatype::boolean:
      if (const auto* flag = std::get_if<bool>(&value)) return append_number<uint8_t>(bytes_, *flag);
      if (const auto* integer = std::get_if<int64_t>(&value); integer && (*integer == 0 || *integer == 1))
        return append_number(bytes_, static_cast<uint8_t>(*integer));
      refuse_value(count_, *type_, text_of_value(value));
    case Datatype::u8:
      return append_integer<uint8_t>(bytes_, value, *type_, count_);
    case Datatype::u16:
      return append_integer<uint16_t>(bytes_, value, *type_, count_);
    case Datatype::u32:
      return append_integer<uint32_t>(bytes_, value, *type_, count_);
    case Datatype::u64:
      return append_integer<uint64_t>(bytes_, value, *type_, count_);
    case Datatype::i8:
      return append_integer<int8_t>(bytes_, value, *type_, count_);
    case Datatype::i16:
      return append_integer<int16_t>(bytes_, value, *type_, count_);
    case Datatype::i32:
      return append_integer<int32_t>(bytes_, value, *type_, count_);
    case Datatype::i64:
      return append_integer<int64_t>(bytes_, value, *type_, count_);
    case Datatype::f32:
      return append_number(bytes_, static_cast<float>(number_of(value, *type_, count_)));
    case Datatype::f64:
      return append_number(bytes_, number_of(value, *type_, count_));
    case Datatype::bytes: {
      const auto* text = std::get_if<std::string>(&value);
      if (!text) refuse_value(count_, *type_, text_of_value(value));
      append_number(bytes_, static_cast<uint32_t>(text->size()));
      bytes_ += *text;
      return;
    }
    default:
      throw Refusal::invalid("values of type ", word_of(*type_), " cannot be sent in JSON: send them as binary data");
  }
}

}  // namespace hctr::serve
