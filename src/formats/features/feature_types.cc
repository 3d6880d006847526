// Names, sizes and ranges of feature types.
#include <array>
#include <limits>

#include "formats/features/feature_spec.h"

namespace hctr {
namespace {

struct Facts {
  FeatureType type;
  const char* name;
  size_t bytes;
  bool whole;
  double least, most;
};

template <class T>
constexpr Facts facts(FeatureType type, const char* name) {
  return {type,
          name,
          sizeof(T),
          std::numeric_limits<T>::is_integer,
          static_cast<double>(std::numeric_limits<T>::lowest()),
          static_cast<double>(std::numeric_limits<T>::max())};
}

constexpr std::array<Facts, 12> kTypes = {{
    {FeatureType::boolean, "bool", 1, true, 0, 1},
    facts<int8_t>(FeatureType::i8, "int8"),
    facts<uint8_t>(FeatureType::u8, "uint8"),
    facts<int16_t>(FeatureType::i16, "int16"),
    facts<uint16_t>(FeatureType::u16, "uint16"),
    facts<int32_t>(FeatureType::i32, "int32"),
    facts<uint32_t>(FeatureType::u32, "uint32"),
    facts<int64_t>(FeatureType::i64, "int64"),
    facts<uint64_t>(FeatureType::u64, "uint64"),
    {FeatureType::f16, "float16", 2, false, -65504, 65504},
    facts<float>(FeatureType::f32, "float32"),
    facts<double>(FeatureType::f64, "float64"),
}};

const Facts& of(FeatureType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

size_t bytes_of(FeatureType type) { return of(type).bytes; }
bool is_whole(FeatureType type) { return of(type).whole; }
std::string name_of(FeatureType type) { return of(type).name; }
double least_of(FeatureType type) { return of(type).least; }
double most_of(FeatureType type) { return of(type).most; }

std::optional<FeatureType> feature_type(std::string_view name) {
  for (const std::string_view prefix : {"torch.", "np.", "numpy."})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  for (const Facts& facts : kTypes)
    if (name == facts.name) return facts.type;
  return {};
}

FeatureType type_for_ids(int64_t cardinality) {
  for (const FeatureType type : {FeatureType::i8, FeatureType::i16, FeatureType::i32})
    if (static_cast<double>(cardinality) < most_of(type)) return type;
  return FeatureType::i64;
}

}  // namespace hctr
