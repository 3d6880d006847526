// Initial values of weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/values.h"

namespace hctr {

/// The initializers that a config may name. `by_default` stands for the layer's own rule, which configs cannot name.
enum class Initializer { by_default, uniform, xavier_norm, xavier_uniform, zero };
template <>
const Words<Initializer>& EnumWords<Initializer>::table();

/// A distribution: normal with standard deviation `scale`, uniform on [-scale, scale), or the constant `scale`.
struct InitialValues {
  enum class Kind { normal, uniform, constant };
  Kind kind = Kind::constant;
  double scale = 0;
};

/// The distribution of an initializer for a weight with this fan-in and fan-out; a bias has fan-in 0.
///   Uniform         U(+-1 / (in + out))
///   XavierNorm      N(0, s^2) with s = sqrt(1 / f) / 0.87962566103423978, f = (in + out) / 2
///   XavierUniform   U(+-sqrt(3 / f))
/// f is at least 1. 0.8796... is the standard deviation of a standard normal distribution that is truncated at two
/// standard deviations. XavierNorm divides by this number, although its own distribution is not truncated.
InitialValues initial_values(Initializer, double fan_in, double fan_out);

/// `count` values for the weight `stream` ("fc1/weights"): a pure function of seed and stream.
std::vector<float> draw(const InitialValues&, int64_t count, uint64_t seed, const std::string& stream);

}  // namespace hctr
