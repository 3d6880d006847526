#include "prepare/init/init.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "config/problems.h"
#include "core/base/expect.h"
#include "core/base/files.h"
#include "formats/data/text_values.h"
#include "formats/io/set_files.h"
#include "formats/io/source_files.h"
#include "prepare/init/added_cells.h"
#include "prepare/init/column_guess.h"
#include "prepare/init/guess_words.h"
#include "prepare/init/init_config.h"
#include "prepare/init/init_report.h"
#include "prepare/init/parquet_pass.h"
#include "prepare/init/stated_column.h"
#include "prepare/init/table_files.h"
#include "prepare/init/text_pass.h"

namespace hctr {
namespace {

/// The output paths of --init.
struct Paths {
  std::string stem;  ///< "conf/income" for conf/income.json. Without --out: the name of the data, in the working folder
  std::string train, eval;
};

/// The name without folder and endings: "income" for data/income.csv.gz.
std::string bare_name(const fs::path& data) {
  if (is_pattern(data)) return "data";
  fs::path name = (data / "").parent_path().filename();  // accepts a folder with a trailing slash
  for (const char* ending : {".gz", ".zst", ".csv", ".tsv", ".txt", ".data", ".parquet"})
    if (name.extension() == ending) name = name.stem();
  return name.empty() ? "data" : name.string();
}

std::string command_of(const InitOptions& options) {
  const auto joined = [](const std::vector<std::string>& columns) {
    std::string text;
    for (const std::string& column : columns) text += (text.empty() ? "" : ",") + column;
    return text;
  };
  const auto with = [](const char* option, const std::string& word) {
    return word.empty() ? "" : cat(" ", option, " ", quoted_word(word));
  };
  return cat("huge_ctr", with("--init", options.data), with("--label", options.label), with("--eval", options.eval),
             options.model == InitModel::wide_deep ? "" : with("--template", template_word(options.model)),
             with("--leave-out", joined(options.leave_out)), with("--category", joined(options.categories)),
             with("--number", joined(options.numbers)), with("--list", joined(options.lists)),
             with("--number-format", options.number_format ? word_of(*options.number_format) : ""),
             with("--out", options.out));
}

void expect_none(const std::string& path) {
  if (path.empty() || !fs::exists(path)) return;
  throw Error(Kind::io, cat("'", path, "' already exists; remove the file, or name another config with --out"));
}

/// Whether a config can contain the text: JSON must be UTF-8.
bool can_be_named(const std::string& text) {
  const Json read = Json::parse(Json(text).text(), "name");
  return *read.string() == text;
}

class Initializer {
 public:
  explicit Initializer(const InitOptions& options) : options_(options) {
    const Log log(options.log);
    const TableFiles files = table_files(options.data, log);
    data_ = files.paths;
    parquet_ = files.parquet;
    if (!options.eval.empty()) {
      const TableFiles eval = table_files(options.eval, log, " of --eval");
      if (eval.parquet != parquet_)
        throw Error(Kind::usage, cat("'", options.eval, "' of --eval is ", eval.parquet ? "Parquet" : "text", ", and '",
                                     options.data, "' is not: both must have the same format"));
      eval_ = eval.paths;
    }
    choose_paths();
  }

  InitResult init(const WriteConfig& write_config) {
    look_at_start();
    SplitFiles split;
    if (options_.eval.empty()) {
      split.train = &files_.add(paths_.train);
      split.eval = &files_.add(paths_.eval);
    }
    pass_ =
        parquet_ ? read_parquet_table(data_, options_, split) : read_text_table(data_, *plan_.layout, options_, split);
    expect_few_bad_rows(pass_);
    expect_rows();
    if (!parquet_)
      for (const fs::path& file : eval_) read_eval_text(file, *plan_.layout, options_, pass_);
    decide();
    InitResult result;
    result.config = init_config(plan_);
    result.report = init_report(plan_, pass_, options_);
    if (!options_.out.empty()) files_.add(options_.out).write(result.config);
    for (AtomicFile& file : files_.files()) file.finish();
    if (write_config) write_config(result.config);
    files_.commit();
    return result;
  }

 private:
  void choose_paths() {
    const fs::path out = options_.out;
    paths_.stem = options_.out.empty()
                      ? bare_name(options_.data)
                      : (out.extension() == ".json" ? fs::path(out).replace_extension() : out).string();
    plan_.train = options_.data;
    plan_.eval = options_.eval;
    expect_none(options_.out);
    if (!options_.eval.empty()) return;
    const char* const ending = parquet_ ? ".parquet" : data_[0].extension() == ".tsv" ? ".tsv" : ".csv";
    plan_.train = paths_.train = paths_.stem + ".train" + ending;
    plan_.eval = paths_.eval = paths_.stem + ".eval" + ending;
    expect_none(paths_.train);
    expect_none(paths_.eval);
  }

  void look_at_start() {
    if (parquet_) return;
    const std::string start = start_of_text(data_[0]);
    plan_.layout = in_context([&] { return cat("reading '", data_[0].string(), "'"); },
                              [&] { return guess_layout(start, options_.label); });
    add_partitions(data_[0], options_.eval.empty(), *plan_.layout);
    expect_stated_columns(options_, plan_.layout->columns);
    if (options_.positive) return;  // skips the check: --positive may name a label that the first rows do not contain
    const LabelFacts first = first_labels(start, *plan_.layout, options_.label, {});
    if (first.counts.size() > 1)  // reports unclear labels now, before reading gigabytes
      in_context([&] { return cat("looking at the first ", first.rows, " rows of '", data_[0].string(), "'"); },
                 [&] { choose_label(options_.label, first, {}, command_of(options_), options_.number_format); });
  }

  void expect_rows() const {
    const int64_t rows = pass_.train_rows + pass_.eval_rows;
    if (rows == 0 && pass_.without_label == 0)
      throw Error(Kind::data, cat("'", options_.data, "' has no rows",
                                  plan_.layout && plan_.layout->header ? " but a header" : ""));
    if (rows == 0) throw Error(Kind::data, cat("label '", options_.label, "': no row has a value"));
    if (pass_.labels.counts.size() == 1 && !pass_.label_marks.empty())
      throw Error(Kind::data,
                  cat("label '", options_.label, "': all rows have the value '", pass_.labels.counts.begin()->first,
                      "' except ", pass_.without_label, " with '", *pass_.label_marks.begin(),
                      "', which means missing; if this text is a label, replace it by another text"));
    if (!options_.eval.empty()) return;
    std::set<std::string> labels;
    for (const LabelFacts* facts : {&pass_.labels, &pass_.held_out_labels})
      for (const auto& [text, count] : facts->counts) labels.insert(text);
    if (labels.size() > 1 && std::min(pass_.labels.counts.size(), pass_.held_out_labels.counts.size()) < 2)
      throw Error(Kind::data,
                  cat("'", options_.data, "' has ", rows, " rows, and the held-out tenth (", pass_.eval_rows,
                      " rows) or the other rows lack one of the labels; name evaluation rows with --eval FILE"));
  }

  void decide() {
    expect_stated_columns(options_, pass_.columns);
    plan_.model = options_.model;
    plan_.label =
        choose_label(options_.label, pass_.labels, options_.positive, command_of(options_), options_.number_format);
    expect_label_of_config();
    plan_.train_rows = pass_.train_rows;
    plan_.eval_rows = pass_.eval_rows;
    plan_.skip_bad_rows = !options_.eval.empty() && (pass_.bad_rows > 0 || pass_.without_label > 0 ||
                                                     pass_.eval_bad_rows > 0 || pass_.eval_without_label > 0);
    for (size_t i = 0; i < pass_.columns.size(); ++i)
      if (i != pass_.label_column) add_guess(i);
    if (pass_.facts[pass_.label_column].padded > 0) trim();
    choose_missing();
    choose_number_format();
    if (options_.model == InitModel::din) choose_items();
    if (!options_.eval.empty()) check_eval();
  }

  /// Checks that every row's label can be read in the way that the config states.
  void expect_label_of_config() const {
    const LabelChoice& label = plan_.label;
    if (!can_be_named(label.column) || !can_be_named(label.text.value_or("")))
      throw Error(Kind::data,
                  cat("label '", label.column, "': the name or a value is not UTF-8; save the table as UTF-8"));
    if (parquet_ && pass_.facts[pass_.label_column].fractions && label.text)
      throw Error(Kind::usage,
                  cat("--positive ", *options_.positive, ": label '", label.column,
                      "' has fractions, so only its larger number can be positive; store the label as integers"));
    if (label.text || pass_.held_out_labels.numbers == pass_.held_out_labels.rows) return;
    for (const auto& [text, rows] : pass_.held_out_labels.counts)
      if (double number = 0; !read_number(label.notation, text, number))
        throw Error(Kind::data, cat("label '", label.column, "' has the value '", text.substr(0, 40), "' in ", rows,
                                    rows == 1 ? " row" : " rows", ", but numbers in all other rows"));
  }

  void add_guess(size_t i) {
    const ColumnFacts& facts = pass_.facts[i];
    const std::string& name = pass_.columns[i];
    const StatedKind stated = stated_kind(name, options_);
    ColumnGuess& guess =
        plan_.columns.emplace_back(stated.any() ? stated_column(name, facts, stated, options_.number_format)
                                                : guess_column(name, facts, options_.number_format));
    plan_.distinct.push_back(guess.is_list_in_text() ? facts.lists[guess.form].distinct : facts.distinct());
    const auto leave_out = [&](const char* why) {
      guess.kind = GuessedKind::left_out;
      guess.why = cat("omitted: ", why);
    };
    if (std::count(pass_.columns.begin(), pass_.columns.end(), name) > 1) leave_out("several columns have this name");
    if (!can_be_named(name)) leave_out("the column's name is not UTF-8; save the table as UTF-8");
    if (std::count(options_.leave_out.begin(), options_.leave_out.end(), name) > 0) leave_out("by --leave-out");
    const bool padded_items = guess.is_list_in_text() && !guess.brackets && facts.lists[guess.form].padded > 0;
    if (guess.kind != GuessedKind::left_out && (facts.padded > 0 || padded_items)) trim();
  }

  void trim() { (plan_.layout ? plan_.layout->grammar.trim : plan_.trim) = true; }

  /// Chooses the texts that mean an empty cell: all marks for missing values in the used columns and the label, except
  /// the positive label.
  void choose_missing() {
    std::set<std::string> marks = pass_.label_marks;
    size_t at = 0;
    for (size_t i = 0; i < pass_.columns.size(); ++i) {
      if (i == pass_.label_column || plan_.columns[at++].kind == GuessedKind::left_out) continue;
      for (const auto& [mark, count] : pass_.facts[i].marks) marks.insert(mark);
      if (plan_.columns[at - 1].brackets)
        marks.insert(pass_.facts[i].marks_in_lists.begin(), pass_.facts[i].marks_in_lists.end());
    }
    marks.erase(plan_.label.text.value_or(""));
    plan_.missing.assign(marks.begin(), marks.end());
  }

  /// Chooses the number format of the whole table: the format that the user states, or else the format of some column.
  /// All other columns' numbers must be readable in that format. For example, the format of 1.234,5 also reads 0,5.
  void choose_number_format() {
    plan_.number_format = options_.number_format;
    if (plan_.number_format) return;
    std::vector<size_t> written;
    for (size_t i = 0; i < plan_.columns.size(); ++i)
      if (plan_.columns[i].kind != GuessedKind::left_out && plan_.columns[i].notation.format) written.push_back(i);
    for (const size_t one : written) {
      const NumberFormat format = *plan_.columns[one].notation.format;
      const bool reads_all = std::all_of(written.begin(), written.end(), [&](size_t i) {
        return facts_of(i).notation.choose(format).kind == NotationFacts::Choice::Kind::one;
      });
      if (format == NumberFormat::plain || !reads_all) continue;
      plan_.number_format = format;
      for (const size_t i : written) take_format(format, plan_.columns[i]);
      return;
    }
  }

  static void take_format(NumberFormat format, ColumnGuess& guess) {
    const std::string before = words_of(guess.notation);
    guess.notation.format = format;
    if (const size_t at = guess.why.find(before); at != guess.why.npos)
      guess.why.replace(at, before.size(), words_of(guess.notation));
  }

  void check_eval() const {
    std::vector<std::string> used = {plan_.label.column};
    for (const ColumnGuess& guess : plan_.columns)
      if (guess.kind != GuessedKind::left_out) used.push_back(guess.name);
    for (const fs::path& file : eval_)
      if (parquet_)
        check_eval_parquet(file, used);
      else
        check_eval_text(file, *plan_.layout, used, plan_.label, pass_.labels);
  }

  const ColumnFacts& facts_of(size_t column) const {
    return pass_.facts[column < pass_.label_column ? column : column + 1];
  }

  /// Whether all values of a column are integers and can be keys.
  bool are_numbers(size_t column) const {
    const ColumnGuess& guess = plan_.columns[column];
    return guess.integers || (guess.kind == GuessedKind::number_and_category && are_key_numbers(facts_of(column)));
  }

  /// Looks for a list column and another column, most of whose values occur in the lists.
  void choose_items() {
    double best = 0;
    bool any_list = false;
    for (size_t l = 0; l < plan_.columns.size(); ++l) {
      const ColumnGuess& list = plan_.columns[l];
      if (list.kind != GuessedKind::list) continue;
      any_list = true;
      for (size_t i = 0; i < plan_.columns.size(); ++i) {
        const ColumnGuess& item = plan_.columns[i];
        if (item.kind == GuessedKind::list || !item.is_slot()) continue;
        const double share = facts_of(i).share_in(facts_of(l), list.form);
        const double fit = share * std::log1p(static_cast<double>(plan_.distinct[i]));
        if (share < 0.5 || fit <= best) continue;
        best = fit;
        plan_.history = l;
        plan_.item = i;
        plan_.item_numbers = list.integers && are_numbers(i);
      }
    }
    if (!any_list)
      throw Error(Kind::usage,
                  "--template din needs a column of lists, such as a user's earlier items, but there is none; try "
                  "--template wdl");
    if (!plan_.history)
      throw Error(Kind::usage,
                  "--template din needs a list column, such as a user's earlier items, and a column of single ids "
                  "with the same values, such as the offered item; no two columns share most of their values; try "
                  "--template wdl");
  }

  const InitOptions& options_;
  bool parquet_ = false;
  Paths paths_;
  std::vector<fs::path> data_, eval_;  // files
  FileSet files_;
  TablePass pass_;
  InitPlan plan_;
};

}  // namespace

InitResult init(const InitOptions& options, const WriteConfig& write_config) {
  return Initializer(options).init(write_config);
}

}  // namespace hctr
