#include "data/parquet/parquet_slot_types.h"

#include <algorithm>

#include "base/error.h"

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
    default:
      return ValueForm::digits;
  }
}

/// Whether equal values of two forms have equal keys.
bool agree(ValueForm a, ValueForm b, const std::optional<KeyRule>& keys) {
  if (a == b) return true;
  const bool texts = a == ValueForm::text || b == ValueForm::text;
  if (!texts) return true;                                             // true counts as 1
  if (!keys) return false;                                             // the type decides
  if (*keys == KeyRule::number || *keys == KeyRule::hex) return true;  // what is no number is a bad record
  return a != ValueForm::truth && b != ValueForm::truth;               // "true" is not "1"
}

}  // namespace

void ParquetSlotTypes::add(const ParquetPlan& plan, const ParquetFileInfo& info, const std::vector<int64_t>& fields,
                           const fs::path& file) {
  seen_.resize(plan.slots.size());
  for (size_t s = 0; s < plan.slots.size(); ++s) {
    const ParquetField& field = info.fields[fields[plan.labels.size() + plan.dense.size() + s]];
    const ValueForm form = form_of(field.type);
    std::vector<Seen>& seen = seen_[s];
    if (form == ValueForm::none ||
        std::any_of(seen.begin(), seen.end(), [&](const Seen& other) { return other.form == form; }))
      continue;
    const std::string place = cat("'", file.string(), "' (", field.said, ")");
    for (const Seen& other : seen)
      if (!agree(form, other.form, plan.slots[s].rule.keys))
        throw Error(Kind::data, cat("column '", field.name, "' is of the type ", field.said, " in '", file.string(),
                                    "', and of another in ", other.place, ": equal values would get different keys; ",
                                    plan.slots[s].rule.keys ? cat("store '", field.name, "' with one type")
                                                            : advice_on_keys(field.name)));
    seen.push_back({form, place});
  }
}

std::vector<SlotKeyRule> ParquetSlotTypes::decide(ParquetPlan& plan, const std::vector<SlotKeyRule>& known) const {
  std::vector<SlotKeyRule> decided;
  for (size_t s = 0; s < plan.slots.size() && s < seen_.size(); ++s) {
    SlotRule& rule = plan.slots[s].rule;
    if (rule.keys) continue;
    if (seen_[s].empty()) {
      const SlotKeyRule* other = find_slot_key_rule(known, rule.column);
      rule.keys = other ? other->rule : KeyRule::number;
      if (!rule.fallback.value_or("").empty()) decided.push_back({rule.column, *rule.keys, "its default"});
      continue;
    }
    rule.keys = seen_[s][0].form == ValueForm::text ? KeyRule::hash : KeyRule::number;
    decided.push_back({rule.column, *rule.keys, seen_[s][0].place});
  }
  return decided;
}

}  // namespace hctr
