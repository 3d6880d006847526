// Options that restore the arithmetic of HugeCTR where it differs from this program's, to reproduce old results.
#pragma once

#include <string>
#include <vector>

#include "config/values.h"

namespace hctr {

/// With all flags false, the program uses its own arithmetic.
struct Compatibility {
  bool schedule_sets_embedding_rates = false;
  bool penalty_per_gpu = false;
  bool dot_product_gradient = false;
  bool evaluation_continues = false;
  bool drop_partial_batches = false;
  bool batch_norm_per_gpu = false;
};

/// A word that the solver's "compatibility" may contain: the flag that the word sets, and a text for the manual.
struct CompatibilityWord {
  std::string word;
  bool Compatibility::*flag;
  std::string text;
};
const std::vector<CompatibilityWord>& compatibility_words();

Misfit read_value(const Json& value, const Range&, Compatibility& out);
Json to_json(const Compatibility&);
template <>
struct TypeWord<Compatibility> {
  static std::string text() { return "array of words"; }
};

}  // namespace hctr
