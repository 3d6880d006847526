#include "data/text/csv_set.h"

#include <algorithm>

#include "base/error.h"
#include "data/column_rules.h"
#include "data/io/set_files.h"
#include "data/text_values.h"

namespace hctr {
namespace {

struct CsvRules {
  std::vector<std::string> labels;
  std::vector<DenseRule> dense;
  std::vector<SlotRule> slots;
};

CsvRules rules_of(const CsvOptions& options) {
  CsvRules rules{options.labels, dense_rules(options.dense), slot_rules(options.slots, options.hash_seed)};
  for (DenseRule& rule : rules.dense) rule.fallback = rule.fallback.value_or(0.0f);
  for (SlotRule& rule : rules.slots) rule.keys = rule.keys.value_or(KeyRule::hash);
  return rules;
}

std::string unexpected_cell(const std::string& column, const char* expected, std::string_view found) {
  return cat("column '", column, "': expected ", expected, ", found ",
             found.empty() ? "nothing" : cat("'", found.substr(0, 40), "'"));
}

/// The column rules, and the index of each column in a file.
class CsvRowMaker : public RowMaker {
 public:
  CsvRowMaker(std::shared_ptr<const CsvRules> rules, const std::vector<std::string>& columns, bool labels_optional)
      : rules_(std::move(rules)), columns_(columns.size()), labels_optional_(labels_optional) {
    const auto place = [&](const std::string& column) {
      const auto found = std::find(columns.begin(), columns.end(), column);
      std::string all;
      for (const std::string& name : columns) all += cat(all.empty() ? "" : ", ", "'", name, "'");
      if (found == columns.end())
        throw Error(Kind::data, cat("there is no column '", column, "'; there are ", all.substr(0, 1000)));
      if (std::find(found + 1, columns.end(), column) != columns.end())
        throw Error(Kind::data, cat("there are two columns '", column, "', of which one must be meant; there are ",
                                    all.substr(0, 1000)));
      return static_cast<size_t>(found - columns.begin());
    };
    const auto missing = [&](const std::string& label) {
      return std::find(columns.begin(), columns.end(), label) == columns.end();
    };
    if (!labels_optional || !std::all_of(rules_->labels.begin(), rules_->labels.end(), missing))
      for (const std::string& label : rules_->labels) labels_.push_back(place(label));
    for (const DenseRule& rule : rules_->dense) dense_.push_back(place(rule.column));
    for (const SlotRule& rule : rules_->slots) slots_.push_back(place(rule.column));
  }

  size_t columns() const override { return columns_; }
  bool has_labels() const override { return !labels_.empty(); }

  std::string make(Cells cells, const RowMajor::Row& row) const override {
    if (labels_.empty()) std::fill_n(row.label, rules_->labels.size(), kNoLabel);
    for (size_t i = 0; i < labels_.size(); ++i) {
      double number = kNoLabel;
      if (!(labels_optional_ && cells[labels_[i]].empty()) && !read_number(cells[labels_[i]], number))
        return unexpected_cell(rules_->labels[i], "a number", cells[labels_[i]]);
      row.label[i] = static_cast<float>(number);
    }
    for (size_t i = 0; i < dense_.size(); ++i)
      if (!dense_value(rules_->dense[i], cells[dense_[i]], row.dense[i]))
        return unexpected_cell(rules_->dense[i].column, "a number or nothing", cells[dense_[i]]);
    for (size_t i = 0; i < slots_.size(); ++i) {
      const size_t before = row.keys->size();
      if (!add_keys(rules_->slots[i], cells[slots_[i]], *row.keys))
        return unexpected_cell(
            rules_->slots[i].column,
            *rules_->slots[i].keys == KeyRule::hex ? "hexadecimal digits" : "an integer of at least 0",
            cells[slots_[i]]);
      row.nnz[i] = static_cast<int32_t>(row.keys->size() - before);
    }
    return "";
  }

 private:
  static bool dense_value(const DenseRule& rule, std::string_view cell, float& value) {
    if (cell.empty()) return value = *rule.fallback, true;
    double number;
    return read_number(cell, number) && transformed(rule, number, value);
  }

  static bool add_keys(const SlotRule& rule, std::string_view cell, std::vector<int64_t>& keys) {
    if (cell.empty()) {
      if (!rule.fallback) return true;
      cell = *rule.fallback;
    }
    if (rule.separator == 0) return add_key(rule, cell, keys);
    return for_each_value(cell, rule.separator, [&](std::string_view value) { return add_key(rule, value, keys); });
  }

  static bool add_key(const SlotRule& rule, std::string_view value, std::vector<int64_t>& keys) {
    int64_t key = 0;
    if (!key_of(rule, *rule.keys, value, key)) return false;
    keys.push_back(key);
    return true;
  }

  std::shared_ptr<const CsvRules> rules_;
  size_t columns_;
  bool labels_optional_;
  std::vector<size_t> labels_, dense_, slots_;  // indices of the columns
};

Schema<CsvOptions> csv_schema() {
  return Schema<CsvOptions>("csv")
      .opt("delimiter", &CsvOptions::delimiter, "the character between cells, \"\\t\" for a tab")
      .opt("quote", &CsvOptions::quote,
           "the character around cells that hold delimiters or line ends, doubled inside them; empty: none")
      .opt("header", &CsvOptions::header, "the first line of each file names its columns, in an order of its own")
      .opt("columns", &CsvOptions::columns,
           "without a header: the names of all columns; left out: their numbers, from \"1\" on")
      .need("labels", &CsvOptions::labels, "columns that are the labels")
      .list("dense", &CsvOptions::dense, dense_columns_schema("the dense value of an empty cell; left out: 0"),
            "the dense values, in order", false)
      .list("slots", &CsvOptions::slots, slot_columns_schema(), "the slots, in the order of the sparse inputs", false)
      .opt("hash_seed", &CsvOptions::hash_seed, "of the hashes of values", between(0, 1LL << 48))
      .together([](CsvOptions& options, const std::string& pointer, Problems& problems) {
        check_one_character(options.delimiter, false, pointer + "/delimiter", problems);
        check_one_character(options.quote, true, pointer + "/quote", problems);
        if (options.delimiter == options.quote) problems.error(pointer + "/quote", "is the delimiter too");
        if (options.header && !options.columns.empty())
          problems.error(pointer + "/columns",
                         "the header names the columns; say \"header\": false where there is none");
      });
}

void check_csv_section(const DataSection& section, const std::string& pointer, Problems& problems) {
  if (!section.options.find<CsvOptions>())
    return problems.error(pointer, "Csv data needs the object \"csv\", which says what its columns are");
  const auto& csv = section.options.get<CsvOptions>();
  const auto compare = [&](const char* field, int64_t stated, int64_t columns, const char* list) {
    if (stated != columns)
      problems.error(pointer + field, cat("is ", stated, ", but ", list, " of \"csv\" names ", columns,
                                          columns == 1 ? " column" : " columns"));
  };
  compare("/label/label_dim", section.label.label_dim, static_cast<int64_t>(csv.labels.size()), "\"labels\"");
  compare("/dense/dense_dim", section.dense.dense_dim, columns_of(csv.dense), "\"dense\"");
  if (section.slots() != columns_of(csv.slots))
    problems.error(pointer + "/sparse", cat("has ", section.slots(), " slots in all, but \"slots\" of \"csv\" names ",
                                            columns_of(csv.slots), " columns"));
}

std::unique_ptr<SampleSet> open_csv_set(const DataSection& section, const Source& source, KeyWidth, const Log& log) {
  return open_text_set(section, source, csv_text_format(section, source.labels_optional), log);
}

}  // namespace

FormatType csv_format() {
  return {.format = kCsvFormat,
          .source_text = "the path of a text file or of a file list",
          .files = text_files,
          .object = format_object("csv", csv_schema(), "for Csv data: what its columns are"),
          .check = check_csv_section,
          .open = open_csv_set};
}

TextGrammar csv_grammar(const CsvOptions& options) {
  return {options.delimiter[0], options.quote.empty() ? '\0' : options.quote[0]};
}

TextFormat csv_text_format(const DataSection& section, bool labels_optional) {
  const auto& options = section.options.get<CsvOptions>();
  auto rules = std::make_shared<const CsvRules>(rules_of(options));
  const auto columns_of_file = [header = options.header, names = options.columns](Cells first) {
    std::vector<std::string> columns = names;
    if (header) columns.assign(first.begin(), first.end());
    for (size_t i = 0; columns.size() < first.size() && names.empty(); ++i) columns.push_back(std::to_string(i + 1));
    if (columns.size() != first.size())
      throw Error(Kind::data, cat("it has ", first.size(), " values, but \"columns\" names ", columns.size()));
    return columns;
  };
  const auto maker = [rules, columns_of_file, labels_optional](Cells first) {
    return std::make_shared<const CsvRowMaker>(rules, columns_of_file(first), labels_optional);
  };
  return {csv_grammar(options), options.header, maker, columns_of_file};
}

}  // namespace hctr
