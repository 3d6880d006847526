// The rules that map values to keys, for slots whose rule depends on column types.
#pragma once

#include <string>
#include <vector>

#include "config/json.h"
#include "formats/data/column_section.h"

namespace hctr {

/// The rule of one slot: "keys" in the config or, without "keys", derived from the column's type.
struct SlotKeyRule {
  std::string column;
  KeyRule rule = KeyRule::number;
  std::string place{};  ///< origin for messages, such as "'a.parquet' (int64)"; empty: unknown
  bool stated = false;
  bool times = false;  ///< keys are hashes of timestamps or times of day, formatted as text

  bool operator==(const SlotKeyRule& other) const {
    return column == other.column && rule == other.rule && stated == other.stated && times == other.times;
  }
};

/// The value of the config field "keys" that selects this rule.
const char* word_of_rule(const SlotKeyRule&);
/// The rules as JSON. Omits `place`.
Json to_json(const std::vector<SlotKeyRule>&);
/// The rules saved in the description `data` of a model's training data; empty if the description has no rules. Errors:
/// Error(data) for JSON that to_json() did not write.
std::vector<SlotKeyRule> slot_key_rules_of(const Json& data);
std::vector<SlotKeyRule> slot_key_rules(const Json&);

/// The rule of a column in the list; null if unknown.
const SlotKeyRule* find_slot_key_rule(const std::vector<SlotKeyRule>&, const std::string& column);

/// Checks that the same columns have time values in both lists. Times are hashed as texts, so their keys differ from
/// those of other types. Errors: Error(data) naming the first column that differs.
void expect_same_times(const std::vector<SlotKeyRule>& wanted, const std::string& wanted_of,
                       const std::vector<SlotKeyRule>& found, const std::string& source);

/// Checks that slots in both lists have the same rule. `wanted_of`, `source`: origins of the lists for messages, such
/// as "the model 'runs/a'". Errors: Error(data) naming the first column whose rules differ, and a remedy.
void expect_slot_key_rules(const std::vector<SlotKeyRule>& wanted, const std::string& wanted_of,
                           const std::vector<SlotKeyRule>& found, const std::string& source);

/// The advice in messages about a column whose type differs between files: store one type, or state "keys".
std::string advice_on_keys(const std::string& column);

}  // namespace hctr
