#include "formats/data/column_section.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

void check_dense(DenseColumns& dense, const std::string& pointer, Problems& problems) {
  const bool standardise = dense.transform.standardise;
  check_notation(dense.notation(), pointer, problems);
  for (const auto& [name, values] : {std::pair{"/mean", &dense.mean}, {"/std", &dense.std}}) {
    if (dense.learned()) continue;
    if (!standardise && !values->empty()) problems.error(pointer + name, "needs \"transform\": \"standardize\"");
    if (standardise && values->size() != 1 && values->size() != dense.columns.size())
      problems.error(pointer + name, cat("expected one number for all columns or ", dense.columns.size(),
                                         ", one for each column; found ", values->size()));
  }
  for (const double std : dense.std)
    if (!(std > 0)) problems.error(pointer + "/std", cat("expected positive numbers, found ", std));
}

void check_slots(SlotColumns& slots, const std::string& pointer, Problems& problems) {
  check_one_character(slots.separator, true, pointer + "/separator", problems);
  if (slots.brackets && slots.separator.find_first_of("[](){}'\"\\") != slots.separator.npos)
    problems.error(pointer + "/separator", "cannot be a separator: lists use brackets and quotes themselves");
  if (slots.buckets != 0 && slots.keys.value_or(KeyRule::hash) != KeyRule::hash)
    problems.error(pointer + "/buckets", "needs \"keys\": \"hash\"");
  if (slots.vocabulary.empty() == (slots.keys == KeyRule::vocabulary))
    problems.error(pointer + "/vocabulary",
                   slots.vocabulary.empty() ? "\"keys\": \"vocabulary\" needs the file with the values, one per line"
                                            : "needs \"keys\": \"vocabulary\"");
}

template <class Group>
int64_t count_columns(const std::vector<Group>& groups) {
  size_t count = 0;
  for (const Group& group : groups) count += group.columns.size();
  return static_cast<int64_t>(count);
}

}  // namespace

void check_one_character(const std::string& value, bool may_be_empty, const std::string& pointer, Problems& problems) {
  if (value.size() == 1 ? value != "\n" && value != "\r" : value.empty() && may_be_empty) return;
  problems.error(pointer, cat("expected one character", may_be_empty ? ", or an empty string for none" : "",
                              ", found \"", value, "\""));
}

void check_missing(const std::vector<std::string>& missing, const std::vector<LabelColumn>& labels,
                   const std::string& pointer, Problems& problems) {
  for (size_t i = 0; i < missing.size(); ++i)
    if (missing[i].empty()) problems.error(cat(pointer, "/missing/", i), "an empty cell is always missing");
  for (size_t i = 0; i < labels.size(); ++i)
    for (const std::string& text : labels[i].positive.texts)
      if (std::find(missing.begin(), missing.end(), text) != missing.end())
        problems.error(cat(pointer, "/labels/", i, "/positive"),
                       cat("\"", text, "\" is also in \"missing\", so it is never a label"));
}

Schema<DenseColumns> dense_columns_schema(const char* fallback) {
  return Schema<DenseColumns>("dense columns")
      .need("columns", &DenseColumns::columns, "columns that become dense values, one value per column, in this order")
      .opt("transform", &DenseColumns::transform,
           "the transform of each number x: \"none\"; \"log\", ln(1 + max(x, 0)); \"standardize\", (x - mean) / std; "
           "or [\"log\", \"standardize\"], both in this order")
      .opt("mean", &DenseColumns::mean,
           "for standardize: the mean, one number for all columns or one for each column; without mean and std "
           "both are computed from the training data and saved with the model")
      .opt("std", &DenseColumns::std,
           "for standardize: the standard deviation, one number for all columns or one "
           "for each column")
      .opt("default", &DenseColumns::fallback, fallback)
      .opt("number_format", &DenseColumns::number_format, kNumberFormatHelp)
      .opt("unit", &DenseColumns::unit, kUnitHelp)
      .together(check_dense);
}

namespace {

/// The slot fields that all formats have. `keys`: the manual's text on how a value becomes a key.
Schema<SlotColumns> common_slot_columns(const std::string& keys) {
  return Schema<SlotColumns>("slot columns")
      .need("columns", &SlotColumns::columns, "columns that become slots, one slot per column, in this order")
      .opt("keys", &SlotColumns::keys, keys)
      .opt("buckets", &SlotColumns::buckets, "for hash: number of keys of each column; 0: 63-bit keys",
           between(0, 1LL << 48))
      .opt("vocabulary", &SlotColumns::vocabulary, "for vocabulary: a text file with one value per line")
      .opt("key_space", &SlotColumns::key_space,
           "a name; slots with the same name map equal values to equal keys and can share vectors, for example an "
           "item and a list of items; default: each slot has its own keys")
      .opt("separator", &SlotColumns::separator,
           "the separator of several values in a text; empty: a text is one "
           "value")
      .opt("brackets", &SlotColumns::brackets,
           "a text holds a list in brackets, such as [3, 5], ['a', 'b'] or {}; brackets, quotes and blanks around "
           "values are dropped; without separator, values are separated by commas, or by blanks as in NumPy")
      .together(check_slots);
}

}  // namespace

Schema<SlotColumns> slot_columns_schema() {
  return common_slot_columns(
             "how a value is converted to a key. hash: by a hash; vocabulary: by its line in a file; number or "
             "hex: as a decimal or hexadecimal number; default: hash")
      .opt("default", &SlotColumns::fallback,
           "the value that replaces an empty cell; \"\", the default: an empty cell gives no key");
}

Schema<SlotColumns> parquet_slot_columns_schema() {
  return common_slot_columns(
             "how a value is converted to a key, as for Csv; numbers are hashed and looked up as decimal digits; "
             "default: integers are the keys, text is hashed")
      .opt("default", &SlotColumns::fallback,
           "the value that replaces a null; \"\": a null gives no key; default: default_key");
}

Misfit read_value(const Json& value, const Range& range, DenseTransforms& out) {
  if (!value.array()) {
    DenseTransform one = DenseTransform::none;
    const std::string expected = read_value(value, range, one);
    out = one;
    return expected;
  }
  out = {};
  for (size_t i = 0; i < value.array()->size(); ++i) {
    const Json& word = (*value.array())[i];
    DenseTransform one = DenseTransform::none;
    Misfit misfit(read_value(word, range, one));
    const DenseTransforms added(one);
    if (misfit.empty() && ((added.log && out.any()) || (added.standardise && out.standardise)))
      misfit = Misfit("each transform once, \"log\" before \"standardize\"");
    if (!misfit.empty()) {
      misfit.pointer = cat("/", i);
      misfit.found = word.string() ? cat("\"", *word.string(), "\"") : word.kind();
      return misfit;
    }
    out.log |= added.log;
    out.standardise |= added.standardise;
  }
  return {};
}

Json to_json(const DenseTransforms& transforms) {
  if (transforms.log && transforms.standardise)
    return Json(Json::Array{to_json(DenseTransform::log), to_json(DenseTransform::standardise)});
  return to_json(transforms.log           ? DenseTransform::log
                 : transforms.standardise ? DenseTransform::standardise
                                          : DenseTransform::none);
}

int64_t columns_of(const std::vector<DenseColumns>& groups) { return count_columns(groups); }
int64_t columns_of(const std::vector<SlotColumns>& groups) { return count_columns(groups); }

std::vector<int64_t> nnz_of(const std::vector<SlotColumns>& groups) {
  std::vector<int64_t> nnz;
  for (const SlotColumns& group : groups)
    nnz.resize(nnz.size() + group.columns.size(), group.separator.empty() && !group.brackets);
  return nnz;
}

std::vector<std::string> key_spaces_of(const std::vector<SlotColumns>& groups) {
  std::vector<std::string> names;
  for (const SlotColumns& group : groups) names.resize(names.size() + group.columns.size(), group.key_space);
  return names;
}

std::vector<int64_t> first_of_key_spaces(const std::vector<std::string>& key_spaces) {
  std::vector<int64_t> firsts;
  for (auto name = key_spaces.begin(); name != key_spaces.end(); ++name)
    firsts.push_back((name->empty() ? name : std::find(key_spaces.begin(), name, *name)) - key_spaces.begin());
  return firsts;
}

void check_key_spaces(const std::vector<SlotColumns>& groups, bool by_type, const std::string& pointer,
                      Problems& problems) {
  const auto same_as = [&](const SlotColumns& group) {
    return [&](const SlotColumns& other) { return other.key_space == group.key_space; };
  };
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    if (group->key_space.empty()) continue;
    const std::string here = cat(pointer, "/slots/", group - groups.begin(), "/");
    const auto first = std::find_if(groups.begin(), group, same_as(*group));
    const auto differ = [&](const char* field) {
      problems.error(here + field, cat("differs from ", pointer, "/slots/", first - groups.begin(), "/", field,
                                       ", which has the key space \"", group->key_space,
                                       "\" too: all slots of a key space must use the same fields for keys"));
    };
    if (by_type && !group->keys)
      problems.error(here + "keys",
                     "slots with a \"key_space\" need \"keys\", such as \"hash\": without \"keys\" the type of "
                     "each column decides, and integers and texts get different keys");
    if (group->keys.value_or(KeyRule::hash) != first->keys.value_or(KeyRule::hash)) differ("keys");
    if (group->buckets != first->buckets) differ("buckets");
    if (group->vocabulary != first->vocabulary) differ("vocabulary");
    if (group->columns.size() == 1 && std::count_if(groups.begin(), groups.end(), same_as(*group)) == 1)
      problems.warn(here + "key_space",
                    cat("no other slot has the key space \"", group->key_space, "\", so the field has no effect"));
  }
}

const std::vector<std::pair<std::string, DenseTransform>>& EnumWords<DenseTransform>::table() {
  static const std::vector<std::pair<std::string, DenseTransform>> words = {
      {"none", DenseTransform::none},
      {"log", DenseTransform::log},
      {"standardize", DenseTransform::standardise},
      {"standardise", DenseTransform::standardise}};
  return words;
}

const std::vector<std::pair<std::string, KeyRule>>& EnumWords<KeyRule>::table() {
  static const std::vector<std::pair<std::string, KeyRule>> words = {
      {"hash", KeyRule::hash}, {"vocabulary", KeyRule::vocabulary}, {"number", KeyRule::number}, {"hex", KeyRule::hex}};
  return words;
}

}  // namespace hctr
