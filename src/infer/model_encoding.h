// Compares the encoding of a config with that of a saved model's training data.
#pragma once

#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "formats/data/slot_key_rules.h"
#include "hctr/solver.h"

namespace hctr {

/// The differences between a config's encoding and that of a model. Empty texts: none, or unknown.
struct EncodingChange {
  std::string fields;  ///< encoding_differences()
  std::string files;   ///< changed_contents()

  bool any() const { return !fields.empty() || !files.empty(); }
  std::string text() const;
};

/// `saved`: the model's config; `data`: the description of its training data, or null. Fields are not compared if
/// preprocess numbered the data at `source` as it did the model's, which may be in another format.
EncodingChange encoding_change(const Json& saved, const Json* data, const Config&, const std::string& source);

/// The rules by which slots of a model's training data got their keys: stated by its config or, by default, decided by
/// the types of the columns. `data`: the description of that data, or null.
std::vector<SlotKeyRule> key_rules_of_model(const Json& saved, const Json* data);

/// Errors: Error(config) for a change that EncodingChoice::config does not allow, with its remedy. `model`: "the model
/// 'a'".
void expect_encoding(const EncodingChange&, const std::string& model, EncodingChoice, const Log&);

/// The same for the models that the config starts from. Only a warning if it loads parts of a model, which may have had
/// other data.
void expect_encoding_of_start(const Config&, EncodingChoice, const Log&);

}  // namespace hctr
