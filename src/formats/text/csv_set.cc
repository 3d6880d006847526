#include "formats/text/csv_set.h"

#include <algorithm>

#include "core/base/expect.h"
#include "formats/data/cell_notation.h"
#include "formats/data/column_rules.h"
#include "formats/data/slot_values.h"
#include "formats/data/text_values.h"
#include "formats/io/set_files.h"

namespace hctr {
namespace {

struct CsvRules {
  std::vector<LabelColumn> labels;
  std::vector<DenseRule> dense;
  std::vector<SlotRule> slots;
  std::vector<std::string> missing;
  bool trim = false;
  bool empty_labels = false;  // label cells may be empty
  // [labels] value if the column is missing; empty: the column is required
  std::vector<std::optional<float>> without_column{};
  std::vector<bool> slots_optional{};
  std::string weight{};             // column of sample weights, which are stored as the last label
  std::vector<std::string> keep{};  // columns to keep as text
};

CsvRules rules_of(const DataSection& section, const Source& source) {
  const auto& options = section.options.get<CsvOptions>();
  CsvRules rules{options.labels, dense_rules(options.dense, section.statistics, options.number_format),
                 slot_rules(options.slots, options.hash_seed, csv_grammar(options)), options.missing, options.trim};
  for (LabelColumn& label : rules.labels) label.number_format = label.notation().within(options.number_format).format;
  for (DenseRule& rule : rules.dense) rule.fallback = rule.fallback.value_or(0.0f);
  for (SlotRule& rule : rules.slots) rule.keys = rule.keys.value_or(KeyRule::hash);
  rules.empty_labels = source.labels_optional;
  for (size_t i = 0; i < rules.labels.size(); ++i)
    rules.without_column.push_back(label_without_column(section, source, i));
  rules.slots_optional = source.slots_optional;
  rules.slots_optional.resize(rules.slots.size());
  if (section.sample_weight.given) rules.weight = section.sample_weight.column;
  rules.keep = source.keep;
  return rules;
}

std::string unexpected_cell(const std::string& column, const std::string& expected, std::string_view found) {
  return cat("column '", column, "': expected ", expected, ", found ",
             found.empty() ? "nothing" : cat("'", found.substr(0, 40), "'"));
}

std::string unexpected_number(const std::string& column, const NumberNotation& notation, const std::string& expected,
                              std::string_view found) {
  return unexpected_cell(column, expected, found) + (notation.plain() ? number_hint(found) : std::string());
}

/// The message about a cell that add_keys() rejects.
std::string unexpected_keys(const SlotRule& rule, std::string_view cell) {
  const char* problem = "";
  if (rule.brackets && !for_each_slot_value(rule, cell, problem, [](std::string_view) { return true; }))
    return cat(unexpected_cell(rule.column, "a list in brackets", cell), ": ", problem);
  return unexpected_cell(rule.column, values_with_keys(*rule.keys), cell);
}

std::string expected_of(const LabelColumn& label) {
  return label.positive.texts.empty() ? describe(label.notation()) : "a text";
}

/// Converts the records of a CSV file by the column rules. Stores the column indices of the file.
class CsvRowMaker : public RowMaker {
 public:
  /// `columns`: columns of the records. Partitions are appended as further columns, unless a column has the same name.
  CsvRowMaker(std::shared_ptr<const CsvRules> rules, std::vector<std::string> columns,
              const std::vector<Partition>& partitions)
      : rules_(std::move(rules)), columns_(columns.size()) {
    for (const Partition& partition : partitions) {
      if (std::find(columns.begin(), columns.end(), partition.name) != columns.end()) continue;
      columns.push_back(partition.name);
      added_columns_.push_back(partition.name);
      added_texts_.push_back(partition.value);
    }
    const auto place = [&](const std::string& column, bool optional) {
      const auto found = std::find(columns.begin(), columns.end(), column);
      if (found == columns.end() && optional) return kAbsent;
      std::string all;
      for (const std::string& name : columns) all += cat(all.empty() ? "" : ", ", "'", name, "'");
      if (found == columns.end())
        throw Error(Kind::data, cat("there is no column '", column, "'; there are ", all.substr(0, 1000)));
      if (std::find(found + 1, columns.end(), column) != columns.end())
        throw Error(Kind::data,
                    cat("there are two columns '", column, "'; rename one; the columns are ", all.substr(0, 1000)));
      return static_cast<size_t>(found - columns.begin());
    };
    for (size_t i = 0; i < rules_->labels.size(); ++i)
      labels_.push_back(place(rules_->labels[i].column, rules_->without_column[i].has_value()));
    for (const DenseRule& rule : rules_->dense) dense_.push_back(place(rule.column, false));
    for (size_t i = 0; i < rules_->slots.size(); ++i)
      slots_.push_back(place(rules_->slots[i].column, rules_->slots_optional[i]));
    if (!uses_added()) {
      added_columns_.clear();
      added_texts_.clear();
    }
    added_.assign(added_texts_.begin(), added_texts_.end());
  }

  size_t columns() const override { return columns_; }
  Cells added() const override { return added_; }
  std::span<const std::string> added_columns() const override { return added_columns_; }
  bool has_labels() const override {
    for (size_t i = 0; i < labels_.size(); ++i)
      if (labels_[i] != kAbsent && rules_->labels[i].column != rules_->weight) return true;
    return false;
  }
  std::string missing_weight() const override {
    return !rules_->empty_labels && !rules_->weight.empty() && labels_.back() == kAbsent ? rules_->weight : "";
  }

  std::string make(Cells cells, const RowMajor::Row& row) const override {
    if (rules_->missing.empty()) return make(cells, cells, row);
    thread_local std::vector<std::string_view> values;
    values.assign(cells.begin(), cells.end());
    for (std::string_view& value : values)
      if (is_missing(value)) value = {};
    return make(values, cells, row);
  }

 private:
  bool is_missing(std::string_view value) const {
    return std::find(rules_->missing.begin(), rules_->missing.end(), value) != rules_->missing.end();
  }

  /// Whether a partition column is used by a rule or kept.
  bool uses_added() const {
    const auto added = [&](size_t index) { return index != kAbsent && index >= columns_; };
    for (const std::vector<size_t>* indices : {&labels_, &dense_, &slots_})
      if (std::any_of(indices->begin(), indices->end(), added)) return true;
    return std::any_of(added_columns_.begin(), added_columns_.end(), [&](const std::string& name) {
      return std::find(rules_->keep.begin(), rules_->keep.end(), name) != rules_->keep.end();
    });
  }

  /// `values`: `cells` with each missing value replaced by an empty text.
  std::string make(Cells values, Cells cells, const RowMajor::Row& row) const {
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i] == kAbsent) {
        row.label[i] = *rules_->without_column[i];
        continue;
      }
      const LabelColumn& label = rules_->labels[i];
      const std::string_view value = values[labels_[i]];
      double number = rules_->without_column[i].value_or(kNoLabel);
      if (value.empty() ? !rules_->empty_labels : !label_of(label, value, number))
        return unexpected_number(label.column, label.notation(), expected_of(label), cells[labels_[i]]);
      row.label[i] = static_cast<float>(number);
    }
    for (size_t i = 0; i < dense_.size(); ++i) {
      const DenseRule& rule = rules_->dense[i];
      if (dense_value(rule, values[dense_[i]], row.dense[i], row.exact ? row.exact + i : nullptr)) continue;
      const NumberNotation notation = rule.notation.value_or(NumberNotation());
      return unexpected_number(rule.column, notation, describe(notation) + " or nothing", cells[dense_[i]]);
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
      const size_t before = row.keys->size();
      if (slots_[i] == kAbsent) {
        row.nnz[i] = 0;
        continue;
      }
      if (!add_keys(rules_->slots[i], values[slots_[i]], *row.keys))
        return unexpected_keys(rules_->slots[i], cells[slots_[i]]);
      row.nnz[i] = static_cast<int32_t>(row.keys->size() - before);
    }
    return "";
  }

  static bool dense_value(const DenseRule& rule, std::string_view cell, float& value, double* exact) {
    if (cell.empty()) {
      value = *rule.fallback;
      if (exact) *exact = static_cast<double>(value);
      return true;
    }
    double number;
    if (rule.notation ? !read_number(*rule.notation, cell, number) : !read_number(cell, number)) return false;
    if (!transformed(rule, number, value)) return false;
    if (exact) *exact = transformed(rule, number);
    return true;
  }

  // Inlined, because a cell with a single key is the most frequent case. Without inlining, the calls took 5 to 8 % of
  // the time of reading CSV.
  [[gnu::flatten]] bool add_keys(const SlotRule& rule, std::string_view cell, std::vector<int64_t>& keys) const {
    bool list = rule.several_values();
    if (cell.empty()) {
      if (!rule.fallback || rule.fallback->empty()) return true;
      cell = *rule.fallback;
      list = list && !rule.brackets;
    }
    if (list) return add_listed_keys(rule, cell, keys);
    int64_t key = 0;
    if (!key_of(rule, *rule.keys, cell, key)) return false;
    keys.push_back(key);
    return true;
  }

  [[gnu::noinline]] bool add_listed_keys(const SlotRule& rule, std::string_view cell,
                                         std::vector<int64_t>& keys) const {
    const char* problem = nullptr;
    return for_each_slot_value(rule, cell, problem, [&](std::string_view value) {
      if (rules_->trim) value = without_blanks(value);
      if (value.empty() || is_missing(value)) return true;
      int64_t key = 0;
      if (!key_of(rule, *rule.keys, value, key)) return false;
      keys.push_back(key);
      return true;
    });
  }

  static constexpr size_t kAbsent = static_cast<size_t>(-1);
  std::shared_ptr<const CsvRules> rules_;
  size_t columns_;
  std::vector<size_t> labels_, dense_, slots_;            // column indices; kAbsent: a missing optional column
  std::vector<std::string> added_columns_, added_texts_;  // names and values of partitions
  std::vector<std::string_view> added_;
};

constexpr size_t kLongestDelimiter = 16;

void check_csv_options(const CsvOptions& options, const std::string& pointer, Problems& problems) {
  const std::string &delimiter = options.delimiter, here = pointer + "/delimiter";
  const bool one = delimiter.size() == 1;
  if (delimiter.empty() || delimiter.size() > kLongestDelimiter || delimiter.find_first_of("\r\n") != delimiter.npos)
    problems.error(here, cat("expected one character, or up to ", kLongestDelimiter,
                             ", none of them a line end; found ", Json(delimiter).text()));
  if (const std::string quote = options.quote.value_or(""); !one && !quote.empty())
    problems.error(pointer + "/quote", cat("cells cannot be quoted if the delimiter has several characters, as in ",
                                           Json(delimiter).text(), "; remove \"quote\""));
  else
    check_one_character(quote, true, pointer + "/quote", problems);
  if (delimiter == options.quote.value_or("\"")) problems.error(pointer + "/quote", "is also the delimiter");
  if (options.header && !options.columns.empty())
    problems.error(pointer + "/columns",
                   "the header names the columns; set \"header\": false if files have no "
                   "header");
  check_missing(options.missing, options.labels, pointer, problems);
  check_key_spaces(options.slots, false, pointer, problems);
}

Schema<CsvOptions> csv_schema() {
  return Schema<CsvOptions>("csv")
      .opt("delimiter", &CsvOptions::delimiter,
           "the delimiter between cells: a character, \"\\t\" for a tab, or, if cells are not quoted, several "
           "characters such as \"::\"")
      .alias("separator")
      .opt("quote", &CsvOptions::quote,
           "the quote character around cells that contain delimiters or line ends; inside a cell it is doubled; "
           "empty: cells are not quoted; default: \", or empty with a delimiter of several characters")
      .opt("trim", &CsvOptions::trim, "remove blanks and tabs around a cell, and around its quotes")
      .opt("missing", &CsvOptions::missing,
           "texts that count as an empty cell, such as \"?\" or \"NA\", compared literally")
      .opt("header", &CsvOptions::header, "the first line of each file names its columns, in any order")
      .opt("columns", &CsvOptions::columns,
           "without a header: the names of all columns; default: their numbers, starting at \"1\"")
      .list("labels", &CsvOptions::labels, label_column_schema(), "the label columns, by name or as objects")
      .list("dense", &CsvOptions::dense,
            dense_columns_schema(
                "the dense value of an empty cell; default: 0 after the transform, which is the mean of a "
                "standardized column"),
            "the dense values, in order", false)
      .list("slots", &CsvOptions::slots, slot_columns_schema(), "the slots, in the order of the sparse inputs", false)
      .opt("hash_seed", &CsvOptions::hash_seed, "seed of the hashes of values", between(0, 1LL << 48))
      .opt("number_format", &CsvOptions::number_format,
           "default number format of labels, weights and dense values; default: \"1234.5\"")
      .together(check_csv_options);
}

StatedWidths csv_widths(const DataSection& section) {
  const CsvOptions* csv = section.options.find<CsvOptions>();
  if (!csv) return {};
  return {static_cast<int64_t>(csv->labels.size()), columns_of(csv->dense), nnz_of(csv->slots)};
}

void check_csv_section(const DataSection& section, const std::string& pointer, Problems& problems) {
  if (!section.options.find<CsvOptions>())
    return problems.error(pointer, "Csv data need the object \"csv\" with the roles of columns");
  const auto& csv = section.options.get<CsvOptions>();
  const auto compare = [&](const char* field, int64_t stated, int64_t columns, const char* list) {
    if (stated != columns)
      problems.error(pointer + field, cat("is ", stated, ", but ", list, " of \"csv\" names ", columns,
                                          columns == 1 ? " column" : " columns"));
  };
  compare("/label/label_dim", section.labels(), static_cast<int64_t>(csv.labels.size()) - section.sample_weight.given,
          "\"labels\"");
  compare("/dense/dense_dim", section.dense.dense_dim, columns_of(csv.dense), "\"dense\"");
  if (section.slots() != columns_of(csv.slots))
    problems.error(pointer + "/sparse", cat("has ", section.slots(),
                                            " slots in total, but \"slots\" of \"csv\" "
                                            "names ",
                                            columns_of(csv.slots), " columns"));
}

std::unique_ptr<SampleSet> open_csv_set(const DataSection& section, const Source& source, KeyWidth, const Log& log) {
  return open_text_set(section, source, csv_text_format(section, source), log);
}

}  // namespace

FormatType csv_format() {
  return {.format = kCsvFormat,
          .source_text = "the path of a text file, of a file list or of a folder",
          .files = text_files,
          .lines_of_text = true,
          .object = format_object("csv", csv_schema(), "for Csv data: the roles of columns"),
          .columns = stated_columns<CsvOptions>,
          .widths = csv_widths,
          .check = check_csv_section,
          .open = open_csv_set};
}

TextGrammar csv_grammar(const CsvOptions& options) {
  const std::string quote = options.quote.value_or(options.delimiter.size() == 1 ? "\"" : "");
  return {.delimiter = options.delimiter[0],
          .quote = quote.empty() ? '\0' : quote[0],
          .trim = options.trim,
          .more = options.delimiter.substr(1)};
}

TextFormat csv_text_format(const DataSection& section, const Source& source) {
  const auto& options = section.options.get<CsvOptions>();
  auto rules = std::make_shared<const CsvRules>(rules_of(section, source));
  const auto columns_of_file = [header = options.header, names = options.columns](Cells first) {
    std::vector<std::string> columns = names;
    if (header) columns.assign(first.begin(), first.end());
    for (size_t i = 0; columns.size() < first.size() && names.empty(); ++i) columns.push_back(std::to_string(i + 1));
    if (columns.size() != first.size())
      throw Error(Kind::data, cat("the line has ", first.size(), " values, but \"columns\" names ", columns.size()));
    return columns;
  };
  const auto maker = [rules, columns_of_file](Cells first, const std::vector<Partition>& partitions) {
    return std::make_shared<const CsvRowMaker>(rules, columns_of_file(first), partitions);
  };
  return {csv_grammar(options), options.header, maker, columns_of_file};
}

}  // namespace hctr
