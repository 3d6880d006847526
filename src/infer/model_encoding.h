// Compares how a config encodes data with how a saved model's training data were encoded.
#pragma once

#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "formats/data/slot_key_rules.h"
#include "hctr/solver.h"

namespace hctr {

/// Where a config encodes data otherwise than a model was trained. Empty texts: nowhere, or not known.
struct EncodingChange {
  std::string fields;  ///< encoding_differences()
  std::string files;   ///< changed_contents()

  bool any() const { return !fields.empty() || !files.empty(); }
  std::string text() const;
};

/// `saved`: the model's config; `data`: the description of its training data, or null. Fields are not compared where
/// the data at `source` were numbered by preprocess as those of the model, which may be in another format.
EncodingChange encoding_change(const Json& saved, const Json* data, const Config&, const std::string& source);

/// How slots of a model's training data got their keys, as its config states or, where it does not, the types of the
/// columns decided. `data`: the description of that data, or null.
std::vector<SlotKeyRule> key_rules_of_model(const Json& saved, const Json* data);

/// Errors: Error(config) for a change that EncodingChoice::config does not allow, with what would take it away.
/// `model`: "the model 'a'".
void expect_encoding(const EncodingChange&, const std::string& model, EncodingChoice, const Log&);

/// The same for the models that the config says training starts from. A warning where it takes parts of a model, which
/// may have had other data.
void expect_encoding_of_start(const Config&, EncodingChoice, const Log&);

}  // namespace hctr
