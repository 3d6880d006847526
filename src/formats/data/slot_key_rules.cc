#include "formats/data/slot_key_rules.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

const char* words_of(KeyRule rule) { return rule == KeyRule::hash ? "hashes of texts" : "the integers in the column"; }

}  // namespace

const char* word_of_rule(const SlotKeyRule& slot) { return slot.rule == KeyRule::hash ? "hash" : "number"; }

Json to_json(const std::vector<SlotKeyRule>& slots) {
  Json list(Json::Array{});
  for (const SlotKeyRule& slot : slots) {
    Json one(Json::Object{{"column", slot.column}, {"keys", word_of_rule(slot)}});
    if (slot.stated) one.set("stated", true);
    if (slot.times) one.set("times", true);
    list.add(std::move(one));
  }
  return list;
}

std::vector<SlotKeyRule> slot_key_rules(const Json& json) {
  std::vector<SlotKeyRule> slots;
  if (!json.array()) throw Error(Kind::data, "expected a list of the slots' key rules");
  for (const Json& slot : *json.array()) {
    const Json *column = slot.find("column"), *keys = slot.find("keys");
    if (!column || !column->string() || !keys || !keys->string())
      throw Error(Kind::data, cat("a key rule of a slot needs \"column\" and \"keys\", found ", slot.text()));
    const auto is_true = [&](const char* name) {
      const Json* value = slot.find(name);
      return value && value->boolean() && *value->boolean();
    };
    slots.push_back({.column = *column->string(),
                     .rule = *keys->string() == "hash" ? KeyRule::hash : KeyRule::number,
                     .stated = is_true("stated"),
                     .times = is_true("times")});
  }
  return slots;
}

std::vector<SlotKeyRule> slot_key_rules_of(const Json& data) {
  const Json* slots = data.find("slot_keys");
  return slots ? slot_key_rules(*slots) : std::vector<SlotKeyRule>();
}

const SlotKeyRule* find_slot_key_rule(const std::vector<SlotKeyRule>& slots, const std::string& column) {
  const auto found = std::find_if(slots.begin(), slots.end(), [&](const SlotKeyRule& s) { return s.column == column; });
  return found == slots.end() ? nullptr : &*found;
}

std::string advice_on_keys(const std::string& column) {
  return cat("store '", column,
             "' with one type, or set the field \"keys\" of its slot in the section \"parquet\" to \"number\" ",
             "if the texts are integers, or to \"hash\" for a hash of the digits");
}

void expect_slot_key_rules(const std::vector<SlotKeyRule>& wanted, const std::string& wanted_of,
                           const std::vector<SlotKeyRule>& found, const std::string& source) {
  for (const SlotKeyRule& slot : found) {
    const SlotKeyRule* other = find_slot_key_rule(wanted, slot.column);
    if (!other || other->rule == slot.rule || (slot.stated && other->stated)) continue;
    const auto at = [](const SlotKeyRule& of) { return of.place.empty() ? std::string() : cat(", as in ", of.place); };
    throw Error(Kind::data, cat("column '", slot.column, "': its keys are ", words_of(slot.rule), " in ", source,
                                at(slot), ", and ", words_of(other->rule), " in ", wanted_of, at(*other),
                                ": none of the keys would match; ", advice_on_keys(slot.column)));
  }
}

void expect_same_times(const std::vector<SlotKeyRule>& wanted, const std::string& wanted_of,
                       const std::vector<SlotKeyRule>& found, const std::string& source) {
  for (const SlotKeyRule& slot : found) {
    const SlotKeyRule* other = find_slot_key_rule(wanted, slot.column);
    if ((other && other->times) == slot.times) continue;
    throw Error(
        Kind::data,
        cat("column '", slot.column, "' holds ", slot.times ? "times in " : "other values than times in ", source,
            slot.place.empty() ? std::string() : cat(", ", slot.place), ", and ",
            slot.times ? "other values in " : "times in ", wanted_of,
            ": the keys are hashes of the texts, so none of the keys would match; store the column with the same "
            "type in both"));
  }
}

}  // namespace hctr
