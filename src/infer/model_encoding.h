// Compares the encoding of a config with that of a saved model's training data.
#pragma once

#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "formats/data/slot_key_rules.h"
#include "hctr/solver.h"

namespace hctr {

/// The differences between a config's encoding and a model's encoding. Empty texts: no differences, or unknown.
struct EncodingChange {
  std::string fields;  ///< result of encoding_differences()
  std::string files;   ///< result of changed_contents()

  bool any() const { return !fields.empty() || !files.empty(); }
  std::string text() const;
};

/// `saved`: the model's config; `data`: the description of its training data, or null. Fields are not compared if the
/// model's data and the data at `source` were numbered by the same run of `preprocess`; the two may then be in
/// different formats.
EncodingChange encoding_change(const Json& saved, const Json* data, const Config&, const std::string& source);

/// The rules that converted the values of a model's training data to keys, one rule per slot. A rule comes from the
/// model's config or, by default, from the type of the column. `data`: the description of the training data, or null.
std::vector<SlotKeyRule> key_rules_of_model(const Json& saved, const Json* data);

/// Checks a changed encoding. Errors: Error(config), with a remedy, for a change that EncodingChoice::config does not
/// allow. `model`: for example "the model 'a'".
void expect_encoding(const EncodingChange&, const std::string& model, EncodingChoice, const Log&);

/// Checks the encodings of the initial models of a config. If the config loads only parts of a model, a difference is a
/// warning, because that model may have had other data.
void expect_encoding_of_start(const Config&, EncodingChoice, const Log&);

}  // namespace hctr
