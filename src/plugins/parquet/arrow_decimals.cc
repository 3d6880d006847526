#include "plugins/parquet/arrow_decimals.h"

#include <arrow/util/decimal.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

namespace hctr {
namespace {

using arrow::Type;

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int64_t kExact = int64_t{1} << 53;  // integers up to this value are exact in a double
constexpr int64_t kSecondsOfDay = 86'400;

/// An integer of `width` bytes in two's complement, little endian.
class Unscaled {
 public:
  Unscaled(const uint8_t* bytes, int width) {
    std::memset(bytes_, bytes[width - 1] >= 0x80 ? 0xff : 0, sizeof bytes_);
    std::memcpy(bytes_, bytes, static_cast<size_t>(width));
  }
  /// The value as int64; none if it does not fit.
  std::optional<int64_t> small() const {
    int64_t low = 0;
    std::memcpy(&low, bytes_, sizeof low);
    for (size_t i = sizeof low; i < sizeof bytes_; ++i)
      if (bytes_[i] != (low < 0 ? 0xff : 0)) return std::nullopt;
    return low;
  }
  std::string digits() const {
    if (const auto low = small()) return std::to_string(*low);
    return arrow::Decimal256(bytes_).ToIntegerString();
  }

 private:
  uint8_t bytes_[32];
};

/// Inserts a decimal point: "-5" with scale 2 becomes "-0.05".
std::string with_point(std::string digits, int scale) {
  if (scale <= 0) return digits == "0" ? digits : digits.append(static_cast<size_t>(-scale), '0');
  const size_t sign = digits[0] == '-' ? 1 : 0, places = static_cast<size_t>(scale);
  if (digits.size() - sign <= places) digits.insert(sign, places + 1 - (digits.size() - sign), '0');
  digits.insert(digits.size() - places, 1, '.');
  return digits;
}

void drop_zeros_behind_point(std::string& number) {
  if (number.find('.') == number.npos) return;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  if (number == "-0") number = "0";
}

double nearest(const Unscaled& value, int scale) {
  const auto low = value.small();
  if (low && *low >= -kExact && *low <= kExact && scale >= 0 && scale <= 22)
    // both operands are exact, so the quotient is correctly rounded
    return static_cast<double>(*low) / kPowersOfTen[scale];
  const std::string text = with_point(value.digits(), scale);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void end_text(ConvertedValues& to) { to.ends.push_back(static_cast<int32_t>(to.text.size())); }

arrow::Status convert_decimals(const arrow::Array& array, ParquetForm form, ConvertedValues& to) {
  const auto& type = static_cast<const arrow::DecimalType&>(*array.type());
  const auto& values = static_cast<const arrow::FixedSizeBinaryArray&>(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    const bool null = array.IsNull(i);
    const uint8_t none[32] = {};
    const Unscaled value(null ? none : values.GetValue(i), type.byte_width());
    if (form == ParquetForm::number) {
      to.numbers.push_back(nearest(value, type.scale()));
    } else if (form == ParquetForm::integer) {
      const auto low = value.small();
      if (!low || type.scale() != 0)
        return arrow::Status::Invalid("the value ", with_point(value.digits(), type.scale()),
                                      " does not fit in 64 bits; store the column as text");
      to.integers.push_back(*low);
    } else {
      if (!null) {
        std::string text = with_point(value.digits(), type.scale());
        if (form == ParquetForm::value) drop_zeros_behind_point(text);
        to.text += text;
      }
      end_text(to);
    }
    if (to.text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      return arrow::Status::Invalid("a chunk of a column has more than 2 GiB");
  }
  return arrow::Status::OK();
}

/// The unit and kind of a date or time type.
struct TimeUnit {
  int64_t per_second = 1;
  bool date = false, clock = false, zone = false;
};

TimeUnit unit_of(const arrow::DataType& type) {
  const auto per_second = [](arrow::TimeUnit::type unit) -> int64_t {
    switch (unit) {
      case arrow::TimeUnit::SECOND:
        return 1;
      case arrow::TimeUnit::MILLI:
        return 1'000;
      case arrow::TimeUnit::MICRO:
        return 1'000'000;
      case arrow::TimeUnit::NANO:
        break;
    }
    return 1'000'000'000;
  };
  switch (type.id()) {
    case Type::DATE32:
      return {.date = true};  // DATE32 counts days
    case Type::DATE64:
      return {.per_second = 1'000, .date = true};
    case Type::TIMESTAMP: {
      const auto& stamp = static_cast<const arrow::TimestampType&>(type);
      return {.per_second = per_second(stamp.unit()), .zone = !stamp.timezone().empty()};
    }
    default:
      return {.per_second = per_second(static_cast<const arrow::TimeType&>(type).unit()), .clock = true};
  }
}

int64_t floor_divided(int64_t a, int64_t b) { return a / b - (a % b < 0); }

void append_padded(int64_t number, int width, std::string& to) {
  const std::string digits = std::to_string(number);
  if (static_cast<int>(digits.size()) < width) to.append(static_cast<size_t>(width) - digits.size(), '0');
  to += digits;
}

/// Converts days since 1970-01-01 to a date in the Gregorian calendar. E. Richards, "Mapping Time", 1998, ch. 25.
void append_date(int64_t days, std::string& to) {
  const int64_t shifted = days + 719'468, era = floor_divided(shifted, 146'097), of_era = shifted - era * 146'097;
  const int64_t year_of_era = (of_era - of_era / 1'460 + of_era / 36'524 - of_era / 146'096) / 365;
  const int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t from_march = (5 * of_year + 2) / 153, month = from_march < 10 ? from_march + 3 : from_march - 9;
  const int64_t year = year_of_era + era * 400 + (month <= 2);
  if (year < 0) to += '-';
  append_padded(year < 0 ? -year : year, 4, to);
  to += '-';
  append_padded(month, 2, to);
  to += '-';
  append_padded(of_year - (153 * from_march + 2) / 5 + 1, 2, to);
}

/// Appends a time of day. `rest`: the fraction of the second, in units of 1 / per_second.
void append_clock(int64_t second, int64_t rest, int64_t per_second, std::string& to) {
  append_padded(second / 3'600, 2, to);
  to += ':';
  append_padded(second / 60 % 60, 2, to);
  to += ':';
  append_padded(second % 60, 2, to);
  if (rest == 0) return;
  int places = 0;
  for (int64_t unit = per_second; unit > 1; unit /= 10) ++places;
  to += '.';
  append_padded(rest, places, to);
  to.erase(to.find_last_not_of('0') + 1);
}

int64_t stored_at(const arrow::Array& array, int64_t i) {
  const auto& type = static_cast<const arrow::FixedWidthType&>(*array.type());
  const uint8_t* const at = array.data()->buffers[1]->data() + (array.offset() + i) * (type.bit_width() / 8);
  int64_t wide = 0;
  int32_t narrow = 0;
  if (type.bit_width() == 64) return std::memcpy(&wide, at, sizeof wide), wide;
  return std::memcpy(&narrow, at, sizeof narrow), narrow;
}

arrow::Status convert_times(const arrow::Array& array, ParquetForm form, ConvertedValues& to) {
  const TimeUnit unit = unit_of(*array.type());
  const bool days = array.type_id() == Type::DATE32;
  for (int64_t i = 0; i < array.length(); ++i) {
    const bool null = array.IsNull(i);
    const int64_t stored = null ? 0 : stored_at(array, i);
    const int64_t second = days ? stored * kSecondsOfDay : floor_divided(stored, unit.per_second);
    const int64_t rest = days ? 0 : stored - second * unit.per_second, day = floor_divided(second, kSecondsOfDay);
    if (form == ParquetForm::number)
      to.numbers.push_back(static_cast<double>(second) +
                           static_cast<double>(rest) / static_cast<double>(unit.per_second));
    else if (form == ParquetForm::integer)
      return arrow::Status::Invalid("the column's times are not stored as integers");
    else if (!null) {
      if (!unit.clock) append_date(day, to.text);
      if (!unit.clock && !unit.date) to.text += ' ';
      if (!unit.date) append_clock(second - (unit.clock ? 0 : day * kSecondsOfDay), rest, unit.per_second, to.text);
      if (unit.zone && form == ParquetForm::text) to.text += 'Z';
    }
    if (form == ParquetForm::value || form == ParquetForm::text) end_text(to);
  }
  return arrow::Status::OK();
}

}  // namespace

ParquetType converted_type(const arrow::DataType& type) {
  if (arrow::is_decimal(type.id()))
    return static_cast<const arrow::DecimalType&>(type).scale() == 0 ? ParquetType::whole_decimal
                                                                     : ParquetType::decimal;
  switch (type.id()) {
    case Type::DATE32:
    case Type::DATE64:
      return ParquetType::date;
    case Type::TIMESTAMP:
      return ParquetType::timestamp;
    case Type::TIME32:
    case Type::TIME64:
      return ParquetType::clock;
    default:
      return ParquetType::other;
  }
}

arrow::Status convert(const arrow::Array& array, ParquetForm form, ConvertedValues& to) {
  to = {};
  if (form == ParquetForm::value || form == ParquetForm::text) to.ends.assign(1, 0);
  return arrow::is_decimal(array.type_id()) ? convert_decimals(array, form, to) : convert_times(array, form, to);
}

}  // namespace hctr
