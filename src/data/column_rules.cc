#include "data/column_rules.h"

#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "data/key_space.h"
#include "data/log_of_count.h"
#include "data/text_values.h"

namespace hctr {

/// The values of a vocabulary and their line numbers, from 0.
class VocabularyFile {
 public:
  explicit VocabularyFile(const fs::path& path) : text_(read_text(path, "vocabulary")) {
    std::string_view rest = text_;
    for (int64_t line = 0; !rest.empty(); ++line) {
      const size_t newline = std::min(rest.find('\n'), rest.size());
      std::string_view value = rest.substr(0, newline);
      if (value.ends_with('\r')) value.remove_suffix(1);
      if (const auto [first, fresh] = numbers_.emplace(value, line); !fresh)
        throw Error(Kind::data, cat("'", path.string(), "' line ", line + 1, ": '", value, "' stands in line ",
                                    first->second + 1, " already"));
      rest.remove_prefix(std::min(newline + 1, rest.size()));
    }
  }
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }
  /// size() for a value that is not there.
  int64_t find(std::string_view value) const {
    const auto found = numbers_.find(value);
    return found == numbers_.end() ? size() : found->second;
  }

 private:
  std::string text_;  // the map's keys are views of it
  std::unordered_map<std::string_view, int64_t> numbers_;
};

std::vector<DenseRule> dense_rules(const std::vector<DenseColumns>& groups,
                                   const std::vector<ColumnStatistics>& statistics) {
  std::vector<DenseRule> rules;
  for (const DenseColumns& group : groups)
    for (size_t i = 0; i < group.columns.size(); ++i) {
      const auto pick = [&](const std::vector<double>& values, double none) {
        return values.empty() ? none : values[values.size() == 1 ? 0 : i];
      };
      DenseRule& rule =
          rules.emplace_back(DenseRule{group.columns[i], group.transform, pick(group.mean, 0), pick(group.std, 1), {}});
      if (group.fallback) rule.fallback = static_cast<float>(*group.fallback);
      if (!group.learned()) continue;
      const ColumnStatistics* learned = find_statistics(statistics, rule.column, rule.transform.log);
      if (!learned)
        throw Error(Kind::config, cat("column '", rule.column,
                                      "': \"standardize\" without \"mean\" and \"std\" needs "
                                      "the statistics of training data, and there are none here"));
      rule.mean = learned->mean;
      rule.std = learned->std;
      if (!rule.fallback) rule.fallback = 0.0f;  // the mean
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
  return rule;
}

std::vector<SlotRule> slot_rules(const std::vector<SlotColumns>& groups, int64_t seed) {
  std::vector<SlotRule> rules;
  int64_t base = 0;
  for (const SlotColumns& group : groups) {
    const auto vocabulary =
        group.keys == KeyRule::vocabulary ? std::make_shared<const VocabularyFile>(group.vocabulary) : nullptr;
    for (const std::string& column : group.columns) {
      SlotRule& rule = rules.emplace_back(slot_rule(column, static_cast<int64_t>(rules.size()), seed));
      rule.keys = group.keys;
      rule.separator = group.separator.empty() ? '\0' : group.separator[0];
      rule.fallback = group.fallback;
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
      if (!read_integer(value, key)) return false;
      break;
    case KeyRule::hex:
      if (!read_hex(value, bits)) return false;
      key = static_cast<int64_t>(bits);
      break;
  }
  return key >= 0 && key < kAllKeys;
}

int64_t csv_hashed_key(std::string_view text, uint64_t seed, int64_t slot, int64_t buckets) {
  return scaled_key(text_hash(text, slot_seed(seed, slot)), buckets);
}

}  // namespace hctr
