#include "formats/data/column_rules.h"

#include <cmath>
#include <functional>
#include <unordered_map>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/foreign_content.h"
#include "core/base/random.h"
#include "formats/data/key_space.h"
#include "formats/data/log_of_count.h"
#include "formats/data/text_values.h"

namespace hctr {

/// The values of a vocabulary file, numbered by record from 0. Each record is one value, which is read like a cell of a
/// data file: without byte order mark, quotes, and the blanks that the grammar trims.
class VocabularyFile {
 public:
  VocabularyFile(const fs::path& path, const TextGrammar& grammar) {
    const std::string all = read_text(path, "vocabulary");
    if (const std::string why = why_no_rows(all); !why.empty())
      throw Error(Kind::data, cat("'", path.string(), "': ", why));
    std::string_view text = all;
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    RecordSplitter splitter(grammar);
    const char* p = text.data();
    for (const char* end = p + text.size(); p < end;) {
      p = splitter.split(p, end);
      const int64_t record = size();
      const auto fail = [&](const std::string& problem) {
        throw Error(Kind::data, cat("'", path.string(), "' value ", record + 1, ": ", problem));
      };
      if (!splitter.problem().empty()) fail(splitter.problem());
      if (splitter.cells().size() != 1)
        fail(cat("expected one value per line, found ", splitter.cells().size(), " cells; ",
                 grammar.quote ? "put values that contain a delimiter in quotes" : "keep only the values in the file"));
      const auto [first, fresh] = numbers_.emplace(splitter.cells()[0], record);
      if (!fresh) fail(cat("'", first->first, "' is already value ", first->second + 1));
      hash_ = mix64(hash_ ^ text_hash(first->first, 0));
    }
  }
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }
  /// A hash of the values and of their order.
  uint64_t hash() const { return hash_; }
  /// The number of a value; size() if the vocabulary lacks it.
  int64_t find(std::string_view value) const {
    const auto found = numbers_.find(value);
    return found == numbers_.end() ? size() : found->second;
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> numbers_;
  uint64_t hash_ = 0;
};

VocabularyFacts facts_of(const VocabularyFile& file) { return {file.size(), file.hash()}; }

std::vector<DenseRule> dense_rules(const std::vector<DenseColumns>& groups,
                                   const std::vector<ColumnStatistics>& statistics,
                                   const std::optional<NumberFormat>& format) {
  std::vector<DenseRule> rules;
  for (const DenseColumns& group : groups)
    for (size_t i = 0; i < group.columns.size(); ++i) {
      const auto pick = [&](const std::vector<double>& values, double none) {
        return values.empty() ? none : values[values.size() == 1 ? 0 : i];
      };
      DenseRule& rule =
          rules.emplace_back(DenseRule{group.columns[i], group.transform, pick(group.mean, 0), pick(group.std, 1), {}});
      if (group.fallback) rule.fallback = static_cast<float>(*group.fallback);
      if (const NumberNotation notation = group.notation().within(format); !notation.plain()) rule.notation = notation;
      if (!group.learned()) continue;
      const ColumnStatistics* learned = find_statistics(statistics, rule.column, rule.transform.log);
      if (!learned)
        throw Error(Kind::config, cat("column '", rule.column,
                                      "': \"standardize\" without \"mean\" and \"std\" needs statistics of "
                                      "training data, which do not exist here"));
      rule.mean = learned->mean;
      rule.std = learned->std;
      if (!rule.fallback) rule.fallback = 0.0f;  // 0 is the mean after "standardize"
    }
  return rules;
}

double transformed(const DenseRule& rule, double number) {
  if (rule.transform.log) number = number <= 0 ? 0 : std::log1p(number);
  return rule.transform.standardise ? (number - rule.mean) / rule.std : number;
}

bool transformed(const DenseRule& rule, double number, float& value) {
  const bool log_alone = rule.transform.log && !rule.transform.standardise;
  value = log_alone && number > 0 && number < 1e4 && number == std::floor(number)
              ? log_of_count(static_cast<int64_t>(number))
              : static_cast<float>(transformed(rule, number));
  return std::isfinite(value);
}

SlotRule slot_rule(const std::string& column, int64_t slot, int64_t seed) {
  SlotRule rule;
  rule.column = column;
  rule.seed = slot_seed(static_cast<uint64_t>(seed), slot);
  rule.buckets = kAllKeys;
  rule.first = slot;
  return rule;
}

std::vector<SlotRule> slot_rules(const std::vector<SlotColumns>& groups, int64_t seed, const TextGrammar& grammar) {
  const std::vector<int64_t> firsts = first_of_key_spaces(key_spaces_of(groups));
  std::vector<SlotRule> rules;
  int64_t base = 0;
  for (const SlotColumns& group : groups) {
    std::shared_ptr<const VocabularyFile> vocabulary;  // read once and shared by the group's slots
    for (const std::string& column : group.columns) {
      const auto slot = static_cast<int64_t>(rules.size()), first = firsts[rules.size()];
      SlotRule& rule = rules.emplace_back(slot_rule(column, first, seed));
      rule.keys = group.keys;
      rule.separator = group.separator.empty() ? '\0' : group.separator[0];
      rule.brackets = group.brackets;
      rule.fallback = group.fallback;
      if (first < slot) {
        const SlotRule& shared = rules[static_cast<size_t>(first)];
        rule.base = shared.base;
        rule.buckets = shared.buckets;
        rule.vocabulary = shared.vocabulary;
        continue;
      }
      if (group.keys == KeyRule::vocabulary && !vocabulary)
        vocabulary = std::make_shared<const VocabularyFile>(group.vocabulary, grammar);
      rule.vocabulary = vocabulary;
      if (const int64_t keys = vocabulary ? vocabulary->size() + 1 : group.buckets; keys > 0) {
        rule.base = base;
        rule.buckets = keys;
        base += keys;
      }
    }
  }
  return rules;
}

bool key_of(const SlotRule& rule, KeyRule keys, std::string_view value, int64_t& key) {
  uint64_t bits = 0;
  switch (keys) {
    case KeyRule::hash:
      key = rule.base + scaled_key(text_hash(value, rule.seed), rule.buckets);
      break;
    case KeyRule::vocabulary:
      key = rule.base + rule.vocabulary->find(value);
      break;
    case KeyRule::number:
      return read_key(value, key);
    case KeyRule::hex:
      if (!read_hex(value, bits)) return false;
      key = static_cast<int64_t>(bits);
      break;
  }
  return true;
}

const char* values_with_keys(KeyRule keys) {
  switch (keys) {
    case KeyRule::number:
      return "an integer from -2^63 to 2^64 - 1";
    case KeyRule::hex:
      return "up to 16 hexadecimal digits";
    case KeyRule::hash:
    case KeyRule::vocabulary:
      break;
  }
  return "a text";
}

}  // namespace hctr
