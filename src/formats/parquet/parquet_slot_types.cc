#include "formats/parquet/parquet_slot_types.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

ValueForm form_of(ParquetType type) {
  switch (type) {
    case ParquetType::null:
      return ValueForm::none;
    case ParquetType::boolean:
      return ValueForm::truth;
    case ParquetType::text:
      return ValueForm::text;
    case ParquetType::date:
      return ValueForm::date;
    case ParquetType::timestamp:
      return ValueForm::timestamp;
    case ParquetType::clock:
      return ValueForm::clock;
    default:
      return ValueForm::digits;
  }
}

bool is_time(ValueForm form) {
  return form == ValueForm::date || form == ValueForm::timestamp || form == ValueForm::clock;
}

/// Whether equal values in two forms get equal keys.
bool agree(ValueForm a, ValueForm b, const std::optional<KeyRule>& keys) {
  if (a == b) return true;
  if (is_time(a) || is_time(b))  // most files write a date as the same text, but times have several notations
    return keys && ((a == ValueForm::date && b == ValueForm::text) || (a == ValueForm::text && b == ValueForm::date));
  const bool texts = a == ValueForm::text || b == ValueForm::text;
  // numbers and booleans have equal keys if they are equal as numbers, such as true and 1
  if (!texts) return true;
  // without "keys", texts are hashed and numbers are not
  if (!keys) return false;
  // these rules parse texts as numbers
  if (*keys == KeyRule::number || *keys == KeyRule::hex) return true;
  // a boolean true is hashed as "1", unlike the text "true"
  return a != ValueForm::truth && b != ValueForm::truth;
}

}  // namespace

/// Adds the form of `field` to `seen`. problem(form, other) describes a conflict between two forms and a remedy.
template <class Problem>
void ParquetSlotTypes::add(Forms& seen, const ParquetField& field, const fs::path& file,
                           const std::optional<KeyRule>& keys, const Problem& problem) {
  const ValueForm form = form_of(field.type);
  if (form == ValueForm::none ||
      std::any_of(seen.begin(), seen.end(), [&](const Seen& other) { return other.form == form; }))
    return;
  for (const Seen& other : seen)
    if (!agree(form, other.form, keys))
      throw Error(Kind::data,
                  cat("column '", field.name, "' has the type ", field.said, " in '", file.string(),
                      "', but another type in ", other.place, ": equal values would ", problem(form, other.form)));
  seen.push_back({form, cat("'", file.string(), "' (", field.said, ")")});
}

void ParquetSlotTypes::add(const ParquetPlan& plan, const ParquetFileInfo& info, const std::vector<int64_t>& fields,
                           const fs::path& file) {
  seen_.resize(plan.slots.size());
  labels_.resize(plan.labels.size());
  const auto one_type = [](const ParquetField& field) { return cat("store '", field.name, "' with one type"); };
  for (size_t l = 0; l < plan.labels.size(); ++l) {
    if (fields[l] == kNoField) continue;
    const ParquetField& field = info.fields[fields[l]];
    if (!plan.labels[l].label.positive.texts.empty())
      add(labels_[l], field, file, KeyRule::hash,
          [&](ValueForm, ValueForm) { return "be different texts of \"positive\": " + one_type(field); });
  }
  for (size_t s = 0; s < plan.slots.size(); ++s) {
    const int64_t at = fields[plan.labels.size() + plan.dense.size() + s];
    if (at == kNoField) continue;  // a missing optional column
    const ParquetField& field = info.fields[at];
    const std::optional<KeyRule>& keys = plan.slots[s].rule.keys;
    add(seen_[s], field, file, keys, [&](ValueForm form, ValueForm other) {
      return cat("get different keys; ",
                 keys || is_time(form) || is_time(other) ? one_type(field) : advice_on_keys(field.name));
    });
  }
}

std::vector<SlotKeyRule> ParquetSlotTypes::decide(ParquetPlan& plan, const std::vector<SlotKeyRule>& known) const {
  std::vector<SlotKeyRule> decided;
  for (size_t s = 0; s < plan.slots.size() && s < seen_.size(); ++s) {
    SlotRule& rule = plan.slots[s].rule;
    const bool times = std::any_of(seen_[s].begin(), seen_[s].end(), [](const Seen& seen) {
      return seen.form == ValueForm::timestamp || seen.form == ValueForm::clock;
    });
    if (rule.keys) {
      const bool known_word = *rule.keys == KeyRule::hash || *rule.keys == KeyRule::number;
      if (!seen_[s].empty() && (known_word || times))
        decided.push_back({rule.column, known_word ? *rule.keys : KeyRule::hash, seen_[s][0].place, true, times});
      continue;
    }
    if (seen_[s].empty()) {
      const SlotKeyRule* other = find_slot_key_rule(known, rule.column);
      rule.keys = other ? other->rule : KeyRule::number;
      if (!rule.fallback.value_or("").empty()) decided.push_back({rule.column, *rule.keys, "its default"});
      continue;
    }
    rule.keys = seen_[s][0].form == ValueForm::text || is_time(seen_[s][0].form) ? KeyRule::hash : KeyRule::number;
    decided.push_back({rule.column, *rule.keys, seen_[s][0].place, false, times});
  }
  return decided;
}

}  // namespace hctr
