// preprocess: the command line of the program that converts click logs and other text tables to training data.
#include <map>

#include "config/checked_json.h"
#include "core/base/expect.h"
#include "core/base/file_lock.h"
#include "core/base/thread_pool.h"
#include "formats/data/text_values.h"
#include "formats/io/set_files.h"
#include "formats/io/source_files.h"
#include "formats/norm/norm_set.h"
#include "formats/parquet/parquet_set.h"
#include "formats/raw/raw_set.h"
#include "prepare/preprocess/preprocess_report.h"
#include "prepare/preprocess/saved_columns.h"
#include "program/command_line.h"
#include "program/program_surroundings.h"
#include "program/progress_line_view.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  preprocess --criteo train.txt.gz --out criteo_ids --min-count 6 --log --normalize minmax --cross C1xC2 C3xC4 --holdout 0.1
  preprocess --criteo day_0.gz day_1.gz --eval-input day_23.gz --out tb --format Raw --integers --modulo 40000000
  preprocess --criteo day_0.gz --out hashed --passes 1 --range 100000 --log
  preprocess --csv ratings.csv --out movies --label click --dense age --categories user,movie --lists genres --split time=978300000
  preprocess --csv shop.csv --out shop --label bought --categories city --split day=2017-04-01

Two passes count values first: ids are contiguous in each slot, 0 missing, 1 rare or unseen, then the values by falling count. One pass
hashes values into a range. <out>/preprocess.json describes the result; its "data" is the Data layer of a config.)";

struct Arguments {
  std::vector<std::string> criteo, csv, crosses, dense, labels, categories, lists, number_formats, units;
  std::string apply, folder, header, fill = "0", split, list_separator = "|", separator = ",";
  double holdout = 0;
  bool random = false, integers = false, brackets = false;
  int key_bits = 32;
  PreprocessOptions make;
  std::optional<SavedColumns> saved;  // read from --apply
};

/// Reads the saved preprocessing of --apply. Errors: Error(usage) for an option that the saved preprocessing decides.
void read_saved(Arguments& given, const CommandLine& app) {
  if (given.apply.empty()) return;
  for (const char* option : {"--label", "--dense", "--categories", "--lists", "--passes", "--range", "--min-count",
                             "--modulo", "--cross", "--fill", "--log", "--normalize", "--number-format", "--unit"})
    if (app.count(option) > 0)
      throw Error(Kind::usage, cat(option, " is taken from '", given.apply, "': --apply sets this option; remove it"));
  given.saved = read_columns(given.apply, log_to_stderr());
  if (given.saved->criteo != given.csv.empty())
    throw Error(Kind::usage, cat("'", given.apply, "' was made of ", given.saved->criteo ? "--criteo" : "--csv",
                                 " rows, but these are ", given.saved->criteo ? "--csv" : "--criteo"));
}

char one_character(const std::string& text, const char* option) {
  if (text == "\\t" || text == "tab") return '\t';
  if (text.size() == 1 && text != "\n" && text != "\"") return text[0];
  throw Error(Kind::usage, cat(option, " '", text, "': expected one character, or tab"));
}

double number(const std::string& text, const char* option) {
  double value = 0;
  if (!read_number(text, value)) throw Error(Kind::usage, cat(option, ": expected a number, found '", text, "'"));
  return value;
}

/// Parses number formats and units: FORMAT or COLUMN=FORMAT, and COLUMN=UNIT.
void read_notations(const Arguments& given, TextRoles& roles) {
  for (const std::string& text : given.number_formats) {
    const size_t equals = text.rfind('=');
    const NumberFormat format = number_format_of(equals == text.npos ? text : text.substr(equals + 1));
    if (equals == text.npos)
      roles.number_format = format;
    else
      roles.notations[text.substr(0, equals)].format = format;
  }
  for (const std::string& text : given.units) {
    const size_t equals = text.rfind('=');
    if (equals == text.npos || equals + 1 == text.size())
      throw Error(Kind::usage, cat("--unit '", text, "': expected COLUMN=UNIT, such as price=$"));
    NumberNotation& notation = roles.notations[text.substr(0, equals)];
    notation.unit = text.substr(equals + 1);
    Problems problems;
    check_notation(notation, "", problems);
    problems.throw_if_any(cat("--unit ", text));
  }
}

void read_table(Arguments& given, const CommandLine& app) {
  PreprocessOptions& make = given.make;
  make.eval_inputs = text_inputs(make.eval_inputs, log_to_stderr());
  if (!given.criteo.empty()) {
    if (!given.csv.empty()) throw Error(Kind::usage, "--criteo and --csv exclude each other; keep one");
    for (const char* option : {"--label", "--dense", "--categories", "--lists", "--header", "--separator", "--split",
                               "--brackets", "--number-format", "--unit"})
      if (app.count(option) > 0)
        throw Error(Kind::usage, cat(option, " requires --csv: the columns of Criteo data are fixed"));
    make.inputs = text_inputs(given.criteo, log_to_stderr());
    return;
  }
  if (given.csv.empty()) throw Error(Kind::usage, "expected --criteo FILE... or --csv FILE..., and --out DIR");
  make.inputs = text_inputs(given.csv, log_to_stderr());
  TextRoles roles{given.labels, given.dense, given.categories, given.lists, {}};
  read_notations(given, roles);
  if (given.saved) roles = given.saved->roles;
  SplitCells split_cells = SplitCells::numbers;
  if (const size_t equals = given.split.find('='); !given.split.empty()) {
    if (equals == std::string::npos)
      throw Error(Kind::usage, cat("--split '", given.split, "': expected COLUMN=VALUE"));
    roles.split = given.split.substr(0, equals);
    make.holdout.by = Holdout::By::column;
    make.holdout.from = read_split(given.split.substr(equals + 1), split_cells);
  }
  const bool named = !given.header.empty();
  if (!named && given.csv[0] == "-")
    throw Error(Kind::usage, "the standard input needs --header: its first line cannot be read in advance");
  const char separator = one_character(given.separator, "--separator");
  const std::string names = named ? given.header : first_record_of(make.inputs[0], {.delimiter = separator});
  if (names.empty())
    throw Error(Kind::data,
                cat("'", make.inputs[0], "' is empty; expected the names of the columns in its first line"));
  std::vector<std::string> partitions;
  for (const Partition& partition : partitions_in(make.inputs[0])) partitions.push_back(partition.name);
  make.table = named_table(names, separator, roles, partitions);
  make.table.brackets = given.brackets;
  make.table.split_cells = split_cells;
  make.table.list_separator = given.brackets && app.count("--list-separator") == 0
                                  ? '\0'
                                  : one_character(given.list_separator, "--list-separator");
  if (!named) make.table.header = names;
}

size_t category(const PreprocessOptions& make, const std::string& name) {
  const std::vector<std::string> names = make.table.categories();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw Error(Kind::usage, cat("--cross: there is no category \"", name, "\"", did_you_mean(name, names)));
  return static_cast<size_t>(found - names.begin());
}

void read_rest(Arguments& given, const CommandLine& app) {
  PreprocessOptions& make = given.make;
  for (const std::string& cross : given.crosses) {
    const size_t times = cross.find('x', 1);
    if (times == std::string::npos)
      throw Error(Kind::usage, cat("--cross '", cross, "': expected two categories with an x between, such as C1xC2"));
    make.crosses.emplace_back(category(make, cross.substr(0, times)), category(make, cross.substr(times + 1)));
  }
  if (given.holdout > 0) {
    if (make.holdout.by == Holdout::By::column)
      throw Error(Kind::usage, "--split and --holdout both select the evaluation rows; keep one");
    make.holdout.by = given.random ? Holdout::By::random : Holdout::By::position;
    make.holdout.share = given.holdout;
  } else if (app.count("--random") > 0) {
    throw Error(Kind::usage, "--random requires --holdout");
  }
  make.dense.fill_with_mean = given.fill == "mean";
  if (!make.dense.fill_with_mean) make.dense.fill = number(given.fill, "--fill");
  make.float_label_dense = !given.integers;
  if (given.integers && make.format != kRawFormat)
    throw Error(Kind::usage, "--integers requires --format Raw; other data are always float");
  if (make.passes == 2 && app.count("--range") > 0)
    throw Error(Kind::usage, "--range requires --passes 1: with two passes the number of values decides");
  make.key_bytes = given.key_bits / 8;
  make.folder = given.folder;
}

void print_set(const char* name, const PreprocessSummary::Set& set) {
  print_formatted("%-12s %lld rows, %.2f %% with a label above 0, %lld file%s\n", name,
                  static_cast<long long>(set.rows),
                  100.0 * static_cast<double>(set.positives) / static_cast<double>(set.rows),
                  static_cast<long long>(set.files), set.files == 1 ? "" : "s");
}

void run(Arguments& given, const CommandLine& app) {
  read_saved(given, app);
  read_table(given, app);
  read_rest(given, app);
  const std::string numbering = given.saved ? given.saved->numbering : "";
  if (given.saved) {
    apply_columns(std::move(*given.saved), given.make);
    given.make.also_read = {given.apply, fs::path(given.apply).parent_path() / kVocabularyFile};
  }
  if (!numbering.empty() && numbering_of(given.make, *given.make.applied) != numbering)
    throw Error(Kind::data, cat("'", given.apply, "' has the numbering ", numbering,
                                ", which does not match its vocabularies and statistics: a file is damaged, "
                                "belongs to another run, or --integers differs"));
  if (app.count("--max-bad-rows") > 0 && !given.make.bad_rows.skip)
    throw Error(Kind::usage, "--max-bad-rows requires --bad-rows skip");
  const FileLock lock(given.make.folder / "", "the folder");
  given.make.progress = show_progress_line;
  const PreprocessSummary summary = preprocess(given.make, log_to_stderr());
  const Json described = describe_preprocessed(given.make, summary);
  if (given.make.passes == 2) write_vocabularies(given.make.folder / kVocabularyFile, summary.fitted);
  write_text(given.make.folder / "preprocess.json", with_checksum(described));
  print_set("training:", summary.train);
  if (summary.eval.rows > 0) print_set("evaluation:", summary.eval);
  int64_t ids = 0;
  for (const int64_t size : summary.fitted.slot_sizes) ids += size;
  print_formatted("%-12s %lld in %lld slots\n\nThe first element of \"layers\":\n\n",
                  "ids:", static_cast<long long>(ids), static_cast<long long>(given.make.slots()));
  print_json(described.find("data")->text(2) + "\n\n");
  print_formatted("\"input_key_type\" of the solver: \"%s\". All figures: %s\n",
                  given.make.key_bytes == 4 ? "I32" : "I64", (given.make.folder / "preprocess.json").c_str());
}

void add_input_options(CommandLine& app, Arguments& given) {
  PreprocessOptions& make = given.make;
  app.add_option(
      "--criteo", given.criteo,
      "Criteo's click logs (label, I1..I13, C1..C26, separated by tabs), read in the given order: plain, gzip or "
      "zstd files, folders or patterns");
  app.add_option(
      "--csv", given.csv,
      "tables with named columns, read in the given order: plain, gzip or zstd files, folders or patterns; - is the "
      "standard input");
  app.add_option("--eval-input", make.eval_inputs, "files of evaluation rows");
  app.add_option("--out", given.folder, "output folder").required();
  app.add_option("--apply", given.apply,
                 "preprocess.json of an earlier run, whose ids and scaling of dense values are applied; unknown "
                 "values get id 1")
      .type_name("FILE");
}

void add_column_options(CommandLine& app, Arguments& given) {
  app.add_option("--label", given.labels, "the label columns of a CSV").comma_separated();
  app.add_option("--dense", given.dense, "the dense columns").comma_separated();
  app.add_option("--categories", given.categories, "the category columns, with one value per cell").comma_separated();
  app.add_option("--lists", given.lists,
                 "list columns, with any number of values per cell; their slots follow the "
                 "slots of categories")
      .comma_separated();
  app.add_option("--number-format", given.number_formats,
                 "number format, written as an example number: 1,234.5 or 1.234,5; COLUMN=FORMAT for one column")
      .type_name("FORMAT");
  app.add_option(
         "--unit", given.units,
         "COLUMN=UNIT: the prefix or suffix of each number of a column, such as price=$; with %, 12.5% is 0.125")
      .type_name("COLUMN=UNIT");
  app.add_option("--header", given.header, "names of the columns, if the files have no header");
  app.add_option("--separator", given.separator, "delimiter of columns, or the word tab").show_default();
  app.add_option("--list-separator", given.list_separator, "delimiter of the values of a list").show_default();
  app.add_flag("--brackets", given.brackets,
               "lists are in brackets, as [3, 5] or ['a', 'b']; brackets, quotes and blanks around values are removed; "
               "without --list-separator values are separated by commas, or by blanks as in NumPy");
}

void add_vocabulary_options(CommandLine& app, Arguments& given) {
  PreprocessOptions& make = given.make;
  app.add_option("--passes", make.passes,
                 "1: hash values into --range keys per slot; 2: count values first, then number them")
      .range(1, 2)
      .show_default();
  app.add_option("--range", make.range, "with --passes 1: number of keys of each slot")
      .range(int64_t{3}, int64_t{1} << 40)
      .show_default();
  app.add_option("--min-count", make.min_count,
                 "with --passes 2: minimum number of occurrences in the training rows; rarer values share id 1")
      .range(int64_t{1}, int64_t{1} << 40)
      .show_default();
  app.add_option("--modulo", make.modulo,
                 "reduce values modulo this number first, which bounds memory; 0: no "
                 "reduction")
      .non_negative()
      .show_default();
  app.add_option("--cross", given.crosses,
                 "pairs of categories to combine, such as C1xC2; in Norm all pairs share slot 0, in Raw and "
                 "Parquet each pair has its own slot, before all other slots");
}

void add_dense_options(CommandLine& app, Arguments& given) {
  PreprocessOptions& make = given.make;
  app.add_option("--fill", given.fill, "value that replaces missing dense values: a number, or mean").show_default();
  app.add_flag("--log", make.dense.log, "dense values become ln(1 + max(v, 0))");
  app.add_word<Normalize>(
      "--normalize", make.dense.normalize,
      {{"none", Normalize::none}, {"minmax", Normalize::minmax}, {"standard", Normalize::standard}},
      "scaling after the logarithm, with statistics of the training rows: to the range 0 to 1, or to mean 0 and "
      "deviation 1");
}

void add_holdout_options(CommandLine& app, Arguments& given) {
  PreprocessOptions& make = given.make;
  app.add_option("--holdout", given.holdout, "fraction of the rows for evaluation, taken from the end").show_default();
  app.add_flag("--random", given.random, "--holdout selects rows at random");
  app.add_option("--seed", make.holdout.seed, "of these draws").show_default();
  app.add_option("--split", given.split,
                 "COLUMN=VALUE: rows with this value or more are for evaluation; a number, or a date as 2017-04-01");
}

void add_output_options(CommandLine& app, Arguments& given) {
  PreprocessOptions& make = given.make;
  app.add_word<DataFormat>("--format", make.format,
                           {{"Norm", kNormFormat}, {"Raw", kRawFormat}, {"Parquet", kParquetFormat}},
                           "output format [Norm]");
  app.add_flag("--integers", given.integers,
               "Raw: write label and dense values as int32, not scaled; negative "
               "values become 0");
  app.add_option("--key-bits", given.key_bits, "bits of a key in Norm and Parquet: 32 or 64")
      .one_of({32, 64})
      .show_default();
  app.add_word<Check>("--check", make.check, {{"sum", Check::sum}, {"none", Check::none}},
                      "Norm: whether records have check sums: sum or none [sum]");
  app.add_option("--rows-per-file", make.rows_per_file, "Norm and Parquet").positive().show_default();
  app.add_word<bool>("--bad-rows", make.bad_rows.skip, {{"error", false}, {"skip", true}},
                     "what to do with bad rows: stop with an error [error], or skip and count");
  app.add_option("--max-bad-rows", make.bad_rows.most, "with --bad-rows skip: maximum number of bad rows [no limit]")
      .non_negative();
  app.add_option("--threads", make.threads, "number of threads; the result does not depend on it")
      .range(1, 1024)
      .show_default();
  app.add_flag("--force", make.force, "overwrite an existing result");
}

int main_of(int argc, char** argv) {
  Arguments given;
  given.make.threads = usable_cores();
  CommandLine app(
      "preprocess",
      "Converts text tables to training data: maps categories to ids, scales dense values, holds out evaluation rows.",
      kExamples);
  // in the order of --help
  add_input_options(app, given);
  add_column_options(app, given);
  add_vocabulary_options(app, given);
  add_dense_options(app, given);
  add_holdout_options(app, given);
  add_output_options(app, given);
  return run_tool(app, argc, argv, [&] { run(given, app); });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { return hctr::main_of(argc, argv); }
