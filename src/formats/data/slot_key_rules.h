// How slots get their keys from the types of a set's columns.
#pragma once

#include <string>
#include <vector>

#include "config/json.h"
#include "formats/data/column_section.h"

namespace hctr {

/// A slot's rule: stated by the config or, without "keys", derived from the type of its column.
struct SlotKeyRule {
  std::string column;
  KeyRule rule = KeyRule::number;
  std::string place{};  ///< how messages name the place: "'a.parquet' (int64)"; empty: not known
  bool stated = false;
  bool times = false;  ///< keys are timestamps or times of day, whose texts have a notation of their own

  bool operator==(const SlotKeyRule& other) const {
    return column == other.column && rule == other.rule && stated == other.stated && times == other.times;
  }
};

/// The word of "keys" that says the same.
const char* word_of_rule(const SlotKeyRule&);
/// Without `place`.
Json to_json(const std::vector<SlotKeyRule>&);
/// The rules in the description of a model's training data; none if it has none. Errors: Error(data) for JSON that
/// to_json() has not written.
std::vector<SlotKeyRule> slot_key_rules_of(const Json& data);
std::vector<SlotKeyRule> slot_key_rules(const Json&);

/// The rule of a column in a list; null where none is known.
const SlotKeyRule* find_slot_key_rule(const std::vector<SlotKeyRule>&, const std::string& column);

/// Errors: Error(data) naming the first column that holds times in `found` but not in `wanted`, or the reverse: their
/// keys are hashes of texts, which differ.
void expect_same_times(const std::vector<SlotKeyRule>& wanted, const std::string& wanted_of,
                       const std::vector<SlotKeyRule>& found, const std::string& source);

/// Compares slots that both lists have. `wanted_of`, `source`: for messages, as "the model 'runs/a'". Errors:
/// Error(data) naming the first column that gets keys by another rule, and what to do.
void expect_slot_key_rules(const std::vector<SlotKeyRule>& wanted, const std::string& wanted_of,
                           const std::vector<SlotKeyRule>& found, const std::string& source);

/// Possible values of "keys" for a column whose types differ.
std::string advice_on_keys(const std::string& column);

}  // namespace hctr
