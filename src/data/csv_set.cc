#include "data/csv_set.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/random.h"
#include "data/log_of_count.h"
#include "data/text_values.h"

namespace hctr {
namespace {

/// The values of a vocabulary and their line numbers, from 0.
class Vocabulary {
 public:
  explicit Vocabulary(const fs::path& path) : text_(read_text(path, "vocabulary")) {
    std::string_view rest = text_;
    for (int64_t line = 0; !rest.empty(); ++line) {
      const size_t newline = std::min(rest.find('\n'), rest.size());
      std::string_view value = rest.substr(0, newline);
      if (value.ends_with('\r')) value.remove_suffix(1);
      if (const auto [first, fresh] = numbers_.emplace(value, line); !fresh)
        throw Error(Kind::data, cat("'", path.string(), "' line ", line + 1, ": '", value, "' stands in line ", first->second + 1, " already"));
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

/// One column that becomes a dense value.
struct DenseRule {
  std::string column;
  DenseTransform transform;
  double mean = 0, std = 1;
  float fallback;
};

/// One column that becomes a slot.
struct SlotRule {
  std::string column;
  KeyRule keys;
  uint64_t seed;
  int64_t base = 0, buckets = 0;  // keys of the slot: [base, base + buckets)
  char separator;
  std::optional<std::string> fallback;
  std::shared_ptr<const Vocabulary> vocabulary;
};

struct CsvRules {
  std::vector<std::string> labels;
  std::vector<DenseRule> dense;
  std::vector<SlotRule> slots;
};

int64_t scaled(uint64_t hash, int64_t buckets) {
  return static_cast<int64_t>(static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * static_cast<uint64_t>(buckets)) >> 64));
}

CsvRules rules_of(const CsvPart& part) {
  CsvRules rules{part.labels, {}, {}};
  for (const CsvDense& group : part.dense)
    for (size_t i = 0; i < group.columns.size(); ++i) {
      const auto pick = [&](const std::vector<double>& values, double none) { return values.empty() ? none : values[values.size() == 1 ? 0 : i]; };
      rules.dense.push_back({group.columns[i], group.transform, pick(group.mean, 0), pick(group.std, 1), static_cast<float>(group.fallback)});
    }
  int64_t base = 0;
  for (const CsvSlots& group : part.slots) {
    const auto vocabulary = group.keys == KeyRule::vocabulary ? std::make_shared<const Vocabulary>(group.vocabulary) : nullptr;
    for (const std::string& column : group.columns) {
      SlotRule rule{column, group.keys, mix64(static_cast<uint64_t>(part.hash_seed) + rules.slots.size()), 0, kAllKeys,
                    group.separator.empty() ? '\0' : group.separator[0], group.fallback, vocabulary};
      if (const int64_t keys = vocabulary ? vocabulary->size() + 1 : group.buckets; keys > 0) {
        rule.base = base;
        rule.buckets = keys;
        base += keys;
      }
      rules.slots.push_back(std::move(rule));
    }
  }
  return rules;
}

std::string unexpected(const std::string& column, const char* expected, std::string_view found) {
  return cat("column '", column, "': expected ", expected, ", found ", found.empty() ? "nothing" : cat("'", found.substr(0, 40), "'"));
}

/// The rules, and where a file has the columns they speak of.
class CsvRows : public RowMaker {
 public:
  CsvRows(std::shared_ptr<const CsvRules> rules, const std::vector<std::string>& columns) : rules_(std::move(rules)), columns_(columns.size()) {
    const auto place = [&](const std::string& column) {
      const auto found = std::find(columns.begin(), columns.end(), column);
      std::string all;
      for (const std::string& name : columns) all += cat(all.empty() ? "" : ", ", "'", name, "'");
      if (found == columns.end()) throw Error(Kind::data, cat("there is no column '", column, "'; there are ", all.substr(0, 1000)));
      return static_cast<size_t>(found - columns.begin());
    };
    for (const std::string& label : rules_->labels) labels_.push_back(place(label));
    for (const DenseRule& rule : rules_->dense) dense_.push_back(place(rule.column));
    for (const SlotRule& rule : rules_->slots) slots_.push_back(place(rule.column));
  }

  size_t columns() const override { return columns_; }

  std::string make(Cells cells, const RowMajor::Row& row) const override {
    for (size_t i = 0; i < labels_.size(); ++i) {
      double number;
      if (!read_number(cells[labels_[i]], number)) return unexpected(rules_->labels[i], "a number", cells[labels_[i]]);
      row.label[i] = static_cast<float>(number);
    }
    for (size_t i = 0; i < dense_.size(); ++i)
      if (!dense_value(rules_->dense[i], cells[dense_[i]], row.dense[i])) return unexpected(rules_->dense[i].column, "a number or nothing", cells[dense_[i]]);
    for (size_t i = 0; i < slots_.size(); ++i) {
      const size_t before = row.keys->size();
      if (!add_keys(rules_->slots[i], cells[slots_[i]], *row.keys))
        return unexpected(rules_->slots[i].column, rules_->slots[i].keys == KeyRule::hex ? "hexadecimal digits" : "an integer of at least 0", cells[slots_[i]]);
      row.nnz[i] = static_cast<int32_t>(row.keys->size() - before);
    }
    return "";
  }

 private:
  static bool dense_value(const DenseRule& rule, std::string_view cell, float& value) {
    if (cell.empty()) return value = rule.fallback, true;
    double number;
    if (!read_number(cell, number)) return false;
    switch (rule.transform) {
      case DenseTransform::none: value = static_cast<float>(number); break;
      case DenseTransform::log: value = number <= 0 ? 0.0f : number < 1e4 && number == std::floor(number) ? log_of_count(static_cast<int64_t>(number)) : static_cast<float>(std::log1p(number)); break;
      case DenseTransform::standardise: value = static_cast<float>((number - rule.mean) / rule.std); break;
    }
    return std::isfinite(value);
  }

  static bool add_keys(const SlotRule& rule, std::string_view cell, std::vector<int64_t>& keys) {
    if (cell.empty()) {
      if (!rule.fallback) return true;
      cell = *rule.fallback;
    }
    if (rule.separator == 0) return add_key(rule, cell, keys);
    for (;;) {
      const size_t end = std::min(cell.find(rule.separator), cell.size());
      if (end > 0 && !add_key(rule, cell.substr(0, end), keys)) return false;
      if (end == cell.size()) return true;
      cell.remove_prefix(end + 1);
    }
  }

  static bool add_key(const SlotRule& rule, std::string_view value, std::vector<int64_t>& keys) {
    int64_t key = 0;
    uint64_t bits = 0;
    switch (rule.keys) {
      case KeyRule::hash: key = rule.base + scaled(text_hash(value, rule.seed), rule.buckets); break;
      case KeyRule::vocabulary: key = rule.base + rule.vocabulary->find(value); break;
      case KeyRule::number:
        if (!read_integer(value, key)) return false;
        break;
      case KeyRule::hex:
        if (!read_hex(value, bits)) return false;
        key = static_cast<int64_t>(bits);
        break;
    }
    keys.push_back(key);
    return key >= 0 && key < kAllKeys;
  }

  std::shared_ptr<const CsvRules> rules_;
  size_t columns_;
  std::vector<size_t> labels_, dense_, slots_;  // where they stand
};

}  // namespace

int64_t csv_hashed_key(std::string_view text, uint64_t seed, int64_t slot, int64_t buckets) {
  return scaled(text_hash(text, mix64(seed + static_cast<uint64_t>(slot))), buckets);
}

void check_csv_clause(const DataClause& clause, const std::string& pointer, Problems& problems) {
  const CsvPart& csv = clause.csv;
  if (!csv.given) return problems.error(pointer, "Csv data needs the object \"csv\", which says what its columns are");
  const auto compare = [&](const char* field, int64_t stated, int64_t columns, const char* list) {
    if (stated != columns) problems.error(pointer + field, cat("is ", stated, ", but ", list, " of \"csv\" names ", columns, columns == 1 ? " column" : " columns"));
  };
  compare("/label/label_dim", clause.label.label_dim, static_cast<int64_t>(csv.labels.size()), "\"labels\"");
  compare("/dense/dense_dim", clause.dense.dense_dim, csv.dense_columns(), "\"dense\"");
  if (clause.slots() != csv.slot_columns())
    problems.error(pointer + "/sparse", cat("has ", clause.slots(), " slots in all, but \"slots\" of \"csv\" names ", csv.slot_columns(), " columns"));
}

TextFormat csv_format(const DataClause& clause) {
  const CsvPart& part = clause.csv;
  auto rules = std::make_shared<const CsvRules>(rules_of(part));
  const auto maker = [rules, header = part.header, names = part.columns](Cells first) {
    std::vector<std::string> columns = names;
    if (header) columns.assign(first.begin(), first.end());
    for (size_t i = 0; columns.size() < first.size() && names.empty(); ++i) columns.push_back(std::to_string(i + 1));
    if (columns.size() != first.size()) throw Error(Kind::data, cat("it has ", first.size(), " values, but \"columns\" names ", columns.size()));
    return std::make_shared<const CsvRows>(rules, columns);
  };
  return {{part.delimiter[0], part.quote.empty() ? '\0' : part.quote[0]}, part.header, maker};
}

std::unique_ptr<SampleSet> open_csv_set(const DataClause& clause, const Source& source, KeyWidth, const Log& log) {
  return open_text_set(clause, source, csv_format(clause), log);
}

}  // namespace hctr
