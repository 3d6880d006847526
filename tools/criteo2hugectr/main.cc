// criteo2hugectr: the command line of the program that converts Criteo's click logs, or their preprocessed text, to
// Norm data sets.
#include <map>

#include "core/base/expect.h"
#include "core/base/thread_pool.h"
#include "formats/data/text_values.h"
#include "formats/io/set_files.h"
#include "prepare/preprocess/criteo_convert.h"
#include "prepare/preprocess/preprocessed_convert.h"
#include "program/command_line.h"
#include "program/program_surroundings.h"
#include "program/progress_line_view.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  criteo2hugectr --tsv train.txt.gz --out criteo --holdout 0.1 --min-count 4
  criteo2hugectr --tsv day_0.gz day_1.gz --out criteo_days --wide all --integers both --buckets 1000000
  zcat train.txt.gz | criteo2hugectr --tsv - --out criteo_32 --key-bits 32
  criteo2hugectr train.out old/sparse_embedding file_list.txt 2

The last form is that of HugeCTR 2.x: preprocessed text, dir/prefix, file list, [wide keys per row], [files per list].)";

struct Arguments {
  std::vector<std::string> old_form;
  CriteoOptions tsv;
  int key_bits = 0;
  bool keyset = false;
};

int64_t number(const std::string& text, const char* what) {
  int64_t value = 0;
  if (!read_integer(text, value) || value < 0)
    throw Error(Kind::usage, cat(what, ": expected a whole number, at least 0, found '", text, "'"));
  return value;
}

void run_old_form(const Arguments& given, const CommandLine& app) {
  const auto& words = given.old_form;
  if (words.size() < 3 || words.size() > 5)
    throw Error(Kind::usage,
                "expected --tsv FILE... --out DIR, or: in.txt dir/prefix file_list.txt [wide keys] [files per list]");
  for (const char* option :
       {"--out", "--wide", "--integers", "--buckets", "--holdout", "--min-count", "--bad-rows", "--max-bad-rows"})
    if (app.count(option) > 0)
      throw Error(Kind::usage, cat(option, " requires --tsv; preprocessed text does not use it"));
  PreprocessedOptions options{.input = words[0], .prefix = words[1], .list = words[2]};
  if (words.size() > 3) options.wide_keys = number(words[3], "wide keys");
  if (words.size() > 4) options.files_per_list = number(words[4], "files per list");
  if (given.key_bits > 0) options.key_bytes = given.key_bits / 8;
  if (app.count("--rows-per-file") > 0) options.rows_per_file = given.tsv.rows_per_file;
  options.check = given.tsv.style.check;
  options.keyset = given.keyset;
  options.threads = given.tsv.threads;
  options.progress = show_progress_line;
  const PreprocessedSummary summary = convert_preprocessed(options, Log::silent());
  print_formatted("%lld rows, %lld files, %lld lists; slot_num %d, keys of %d bits: \"input_key_type\": \"%s\"\n",
                  static_cast<long long>(summary.rows), static_cast<long long>(summary.files),
                  static_cast<long long>(summary.lists), options.wide_keys > 0 ? 27 : 26, options.key_bytes * 8,
                  options.key_bytes == 4 ? "I32" : "I64");
}

void print_set(const char* name, int64_t rows, int64_t positives, int64_t files) {
  print_formatted("%-12s %lld rows, %.2f %% positive, %lld files\n", name, static_cast<long long>(rows),
                  100.0 * static_cast<double>(positives) / static_cast<double>(rows), static_cast<long long>(files));
}

void run_tsv(Arguments& given, const CommandLine& app) {
  CriteoOptions& options = given.tsv;
  if (options.folder.empty()) throw Error(Kind::usage, "--tsv needs --out DIR, the output folder");
  if (given.keyset) throw Error(Kind::usage, "--keyset requires preprocessed text");
  if (given.key_bits > 0) options.style.key_bytes = given.key_bits / 8;
  if (app.count("--max-bad-rows") > 0 && !options.bad_rows.skip)
    throw Error(Kind::usage, "--max-bad-rows requires --bad-rows skip");
  options.progress = show_progress_line;
  options.inputs = text_inputs(options.inputs, log_to_stderr());
  const CriteoSummary summary = convert_criteo(options, log_to_stderr());
  print_set("training:", summary.train_rows, summary.train_positives, summary.train_files);
  if (summary.val_rows > 0) print_set("evaluation:", summary.val_rows, summary.val_positives, summary.val_files);
  if (summary.distinct_values > 0)
    print_formatted("%-12s %lld distinct in the training rows\n",
                    "values:", static_cast<long long>(summary.distinct_values));
  const NormStyle style = options.style.norm();
  print_formatted("%-12s slot_num %lld, dense_dim %lld, %lld keys of %d bits\n\nThe first element of \"layers\":\n\n",
                  "a sample:", static_cast<long long>(style.slots), static_cast<long long>(style.dense_dim),
                  static_cast<long long>(options.style.wide_keys() + options.style.deep_slots()), style.key_bytes * 8);
  print_json(criteo_data_section(options).text(2));
  print_formatted("\n\n\"input_key_type\" of the solver is optional, since it is detected; it is \"%s\".\n",
                  style.key_bytes == 4 ? "I32" : "I64");
}

int main_of(int argc, char** argv) {
  Arguments given;
  CriteoOptions& tsv = given.tsv;
  tsv.threads = usable_cores();
  std::string folder;
  CommandLine app("criteo2hugectr",
                  "Converts Criteo's click logs (label, I1..I13, C1..C26, separated by tabs) to Norm data sets.",
                  kExamples);
  app.add_option("old_form", given.old_form, "in.txt dir/prefix file_list.txt [wide keys] [files per list]");
  app.add_option("--tsv", tsv.inputs,
                 "click logs: plain, gzip or Zstandard files, folders or patterns, read in the given order; - is the "
                 "standard input, plain or gzip");
  app.add_option("--out", folder, "folder for train.txt, train.<n>.data, val.txt, val.<n>.data");
  app.add_word<Wide>(
      "--wide", tsv.style.wide, {{"none", Wide::none}, {"all", Wide::all}, {"cross", Wide::cross}},
      "content of an additional slot 0. none: no such slot; all: the 26 categories and 13 bucketed integers; "
      "cross: C1xC2 and C3xC4 [none]");
  app.add_word<Integers>(
      "--integers", tsv.style.integers,
      {{"dense", Integers::dense}, {"buckets", Integers::buckets}, {"both", Integers::both}},
      "use of I1..I13. dense: dense values ln(1 + max(v, 0)); buckets: 13 more slots, bucketed by floor(ln(v)^2); "
      "both [dense]");
  app.add_option("--buckets", tsv.style.buckets, "number of hashed keys per column; 0: every value has its own key")
      .show_default();
  app.add_option("--key-bits", given.key_bits, "32 or 64 [64; preprocessed text 32]").one_of({32, 64});
  app.add_word<Check>("--check", tsv.style.check, {{"sum", Check::sum}, {"none", Check::none}},
                      "whether records have check sums: sum or none [sum]");
  app.add_option("--rows-per-file", tsv.rows_per_file, "rows of each data file [500000; preprocessed text 40960]")
      .positive();
  app.add_option("--holdout", tsv.holdout, "fraction of the rows for evaluation, taken from the end").show_default();
  app.add_option("--min-count", tsv.min_count,
                 "minimum number of occurrences in the training rows; rarer values share one key per column; 0: off")
      .non_negative()
      .show_default();
  app.add_word<bool>("--bad-rows", tsv.bad_rows.skip, {{"error", false}, {"skip", true}},
                     "what to do with bad rows: stop with an error [error], or skip and count");
  app.add_option("--max-bad-rows", tsv.bad_rows.most, "with --bad-rows skip: maximum number of bad rows [no limit]")
      .non_negative();
  app.add_flag("--keyset", given.keyset,
               "only for preprocessed text: for each file list, also write its distinct keys to a .keyset file next to "
               "the list");
  app.add_option("--threads", tsv.threads, "number of threads; the result does not depend on it")
      .range(1, 1024)
      .show_default();
  app.add_flag("--force", tsv.force, "overwrite an existing set");
  return run_tool(app, argc, argv, [&] {
    tsv.folder = folder;
    if (tsv.inputs.empty())
      run_old_form(given, app);
    else if (!given.old_form.empty())
      throw Error(Kind::usage, cat("'", given.old_form[0], "' cannot be combined with --tsv"));
    else
      run_tsv(given, app);
  });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { return hctr::main_of(argc, argv); }
