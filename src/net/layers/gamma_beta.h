// gamma and beta of the normalization layers: y = gamma * normalized + beta.
#pragma once

#include <string>
#include <vector>

#include "net/layers/layer_type.h"

namespace hctr {

/// Declares the fields "gamma_init" and "beta_init" of Params.
template <class Params>
void add_gamma_beta(Schema<Params>& schema, const std::string& layer_type) {
  schema.opt("gamma_init", &Params::gamma_init, "initial value of gamma: Zero; default: 1")
      .opt("beta_init", &Params::beta_init, "initial value of beta: Zero, the default")
      .together([layer_type](Params& p, const std::string& pointer, Problems& problems) {
        const auto has_word = [](Initializer word) {
          return word == Initializer::by_default || word == Initializer::zero;
        };
        if (!has_word(p.gamma_init))
          problems.note(pointer + "/gamma_init", layer_type + " supports only Zero; gamma starts at 1");
        if (!has_word(p.beta_init))
          problems.note(pointer + "/beta_init", layer_type + " supports only Zero; beta starts at 0");
      });
}

/// The weights gamma and beta for `n` columns.
inline std::vector<WeightSpec> gamma_beta_weights(Initializer gamma_init, int64_t n) {
  const InitialValues one{InitialValues::Kind::constant, 1}, zero{};
  return {{"gamma", {n}, gamma_init == Initializer::zero ? zero : one, false}, {"beta", {n}, zero, false}};
}

}  // namespace hctr
