#include "net/layers/initializer.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"

namespace hctr {

template <>
const Words<Initializer>& EnumWords<Initializer>::table() {
  static const Words<Initializer> words = {{"Uniform", Initializer::uniform},
                                           {"XavierNorm", Initializer::xavier_norm},
                                           {"XavierUniform", Initializer::xavier_uniform},
                                           {"Zero", Initializer::zero}};
  return words;
}

InitialValues initial_values(Initializer word, double fan_in, double fan_out) {
  using enum InitialValues::Kind;
  const double f = std::max(1.0, (fan_in + fan_out) / 2);
  switch (word) {
    case Initializer::uniform:
      return {uniform, 1.0 / (fan_in + fan_out)};
    case Initializer::xavier_norm:
      return {normal, std::sqrt(1.0 / f) / 0.87962566103423978};
    case Initializer::xavier_uniform:
      return {uniform, std::sqrt(3.0 / f)};
    case Initializer::zero:
    case Initializer::by_default:
      break;
  }
  return {constant, 0};
}

std::vector<float> draw(const InitialValues& start, int64_t count, uint64_t seed, const std::string& stream) {
  std::vector<float> values(static_cast<size_t>(count));
  const uint64_t key = random_key(seed, random_stream(stream));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (start.kind) {
      case InitialValues::Kind::constant:
        values[i] = static_cast<float>(start.scale);
        break;
      case InitialValues::Kind::uniform:
        values[i] = symmetric_float(random_bits(key, 0, i), static_cast<float>(start.scale));
        break;
      case InitialValues::Kind::normal: {
        const Random4 r = philox(key, 0, i);
        values[i] = static_cast<float>(start.scale * standard_normal(r.v[0], r.v[1]));
        break;
      }
    }
  }
  return values;
}

}  // namespace hctr
