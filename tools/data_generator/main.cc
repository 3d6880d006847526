// data_generator: the command line of the program that generates data sets with a planted truth for a config
// (prepare/generate/generate.h).
#include <charconv>
#include <map>

#include "core/base/expect.h"
#include "core/base/thread_pool.h"
#include "formats/catalog/data_schema.h"
#include "formats/parquet/parquet_set.h"
#include "formats/raw/raw_set.h"
#include "prepare/generate/generate.h"
#include "program/command_line.h"
#include "program/program_surroundings.h"
#include "program/progress_line_view.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  data_generator --config wdl.json --samples 100000 --eval-samples 10000
  data_generator --config wdl.json --samples 10000 --vocabulary 50000 --alpha 1.3 --seed 7 --force
  data_generator --config dlrm_raw.json
  data_generator --config wdl.json --text csv --nnz 1 --samples 1000 --force
  data_generator wdl.json ./wdl_data 260000 1 --files 4 --samples 10000 --long-tail medium --force

The second form is that of HugeCTR 2.x: config, data folder, keys over all slots together, most keys per slot,
[files], [samples per file]. It writes train/gen_<n>.data and val/gen_<n>.data into the folder.

Labels are drawn from a hidden model, so the best possible AUC is known: it is printed, and kept in
<eval_source>.truth.json.)";

struct Arguments {
  std::vector<std::string> old_form;
  std::string config, long_tail, keys, text, distribution;
  int key_bits = 0;
  GenerateOptions make;
  int64_t files = 0, samples = 0, eval_files = 0;
};

int64_t number(const std::string& text, const char* what) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw Error(Kind::usage, cat(what, ": expected a whole number, at least 1, found '", text, "'"));
  return value;
}

/// Converts HugeCTR 2.x's words for the power law's exponent. The values are from its later releases, whose power law
/// favors small keys like this program's.
double alpha_of(const std::string& tail) {
  static const std::map<std::string, double> words = {{"long", 0.9}, {"medium", 1.1}, {"short", 1.3}};
  return words.at(tail);
}

/// Reads the old argument form: config data_folder vocabulary_size max_nnz [files] [samples per file].
void apply_old_form(Arguments& given, const CommandLine& app) {
  const auto& words = given.old_form;
  if (words.size() == 1) {  // Raw data
    given.config = words[0];
    given.old_form.clear();
    return;
  }
  if (words.size() < 4 || words.size() > 6)
    throw Error(
        Kind::usage,
        "expected --config FILE, or: config.json data_folder vocabulary_size max_nnz [files] [samples per file]");
  given.config = words[0];
  given.make.folder = words[1];
  given.make.vocabulary = {number(words[2], "vocabulary_size")};
  given.make.max_nnz = number(words[3], "max_nnz");
  const int64_t files = words.size() > 4 ? number(words[4], "files") : given.files > 0 ? given.files : 128;
  const int64_t samples = words.size() > 5    ? number(words[5], "samples per file")
                          : given.samples > 0 ? given.samples
                                              : 40960;
  given.make.files = given.make.eval_files = files;
  given.make.samples = given.make.eval_samples = files * samples;
  if (app.count("--alpha") == 0) given.make.alpha = given.long_tail.empty() ? 0 : alpha_of(given.long_tail);
}

void apply_new_form(Arguments& given, const CommandLine& app, const DataSection& section) {
  const bool raw = given.make.written_as == WrittenAs::raw;
  if (given.samples > 0)
    given.make.samples = given.samples;
  else if (section.num_samples > 0)
    given.make.samples = section.num_samples;
  if (app.count("--eval-samples") == 0)
    given.make.eval_samples =
        section.eval_num_samples > 0 ? section.eval_num_samples : std::max<int64_t>(given.make.samples / 10, 1);
  if (given.make.samples < section.num_samples ||
      (!section.eval_source.empty() && given.make.eval_samples < section.eval_num_samples))
    throw Error(Kind::usage, cat("the Data layer expects num_samples ", section.num_samples, " and eval_num_samples ",
                                 section.eval_num_samples, ", but only ", given.make.samples, " and ",
                                 given.make.eval_samples, " samples were requested"));
  given.make.files = given.files > 0 ? given.files : raw ? 1 : std::min<int64_t>(8, given.make.samples);
  given.make.eval_files = given.eval_files > 0 ? given.eval_files
                          : raw                ? 1
                                               : std::min<int64_t>(2, given.make.eval_samples);
  if (app.count("--alpha") == 0 && !given.long_tail.empty()) given.make.alpha = alpha_of(given.long_tail);
}

/// Returns the config's Data section, and the key width that the solver requires.
DataSection read_section(Arguments& given) {
  const Json config = Json::read_file(given.config);
  Problems problems;
  DataSection section = data_section_of(config, problems);
  problems.throw_if_any(given.config);
  const Json* solver = config.find("solver");
  const Json* width = solver ? solver->find("input_key_type") : nullptr;
  const bool narrow = width && width->string() && *width->string() == "I32";
  given.make.key_bytes = given.key_bits > 0 ? given.key_bits / 8 : narrow || section.format == kRawFormat ? 4 : 8;
  return section;
}

void print(const std::string& set, const std::string& part, const BestPossible& best) {
  print_formatted(
      "best possible on '%s'%s (%lld samples, %.4f positive): AUC %.5f, AverageLoss %.5f, calibration %.4f\n",
      set.c_str(), part.c_str(), static_cast<long long>(best.samples), best.positive_share, best.auc, best.average_loss,
      best.calibration);
}

void run(Arguments& given, const CommandLine& app) {
  if (!given.config.empty() && !given.old_form.empty())
    throw Error(Kind::usage, cat("'", given.old_form[0], "' cannot be combined with --config"));
  if (given.config.empty()) apply_old_form(given, app);
  const DataSection section = read_section(given);
  if (!given.text.empty())
    given.make.written_as = given.text == "csv" ? WrittenAs::csv : WrittenAs::tsv;
  else if (section.format == kRawFormat)
    given.make.written_as = WrittenAs::raw;
  else if (section.format == kParquetFormat)
    given.make.written_as = WrittenAs::parquet;
  if (given.old_form.empty()) apply_new_form(given, app, section);
  if (given.distribution == "unified") given.make.alpha = 0;
  given.make.hashed_keys = given.keys == "hashed";
  if (!given.old_form.empty()) {  // the old form's vocabulary_size is the sum over all slots
    const int64_t each = given.make.vocabulary[0] / section.slots();
    if (each < 1)
      throw Error(Kind::usage,
                  cat("a vocabulary_size of ", given.make.vocabulary[0], " for ", section.slots(), " slots"));
    given.make.vocabulary = {each};
  }
  given.make.config = given.config;
  given.make.environment = system_environment();
  given.make.progress = show_progress_line;
  const auto best = generate(section, given.make, log_to_stderr());
  if (!best) return;
  print(section.eval_source, "", *best);
  for (size_t label = 0; label < best->labels.size(); ++label)
    print(section.eval_source, cat(", label ", label), best->labels[label]);
}

void add_set_options(CommandLine& app, Arguments& given) {
  app.add_option(
      "old_form", given.old_form,
      "config.json data_folder vocabulary_size max_nnz [files] [samples per file]; config.json alone for Raw");
  app.add_option("--config,--config-file", given.config,
                 "config whose Data layer describes the data; writes its source and eval_source");
  app.add_option("--samples", given.samples,
                 "number of training samples [1000000]; with positional arguments: "
                 "samples per file [40960]")
      .positive();
  app.add_option("--eval-samples", given.make.eval_samples,
                 "number of evaluation samples; default: a tenth of the training samples")
      .positive();
  app.add_option("--files", given.files, "number of training files [8; with positional arguments 128]").positive();
  app.add_option("--eval-files", given.eval_files, "evaluation files [2]").positive();
  app.add_option("--seed", given.make.seed, "the same seed gives the same bytes").show_default();
}

void add_key_options(CommandLine& app, Arguments& given) {
  app.add_option(
         "--vocabulary,--voc-size-array", given.make.vocabulary,
         "distinct keys per slot: one number, or one per slot; default: slot_size_array of the config, or 10000")
      .comma_separated();
  app.add_option("--alpha", given.make.alpha, "exponent of the power law of keys; 0: uniform")
      .show_default()
      .real_range(0.0, 10.0);
  app.add_option("--long-tail,--longtail", given.long_tail, "alpha by name: long 0.9, medium 1.1, short 1.3")
      .one_of({"long", "medium", "short"});
  app.add_option("--distribution", given.distribution, "key distribution: powerlaw, or unified for --alpha 0")
      .one_of({"powerlaw", "unified"});
  app.add_option(
         "--nnz,--nnz-array", given.make.nnz,
         "keys of each slot in every sample: one number, or one per slot; default: drawn between 1 and the maximum")
      .comma_separated();
  app.add_option("--text", given.text,
                 "csv or tsv: write the samples as text with a header; keys of a list are separated by |")
      .one_of({"csv", "tsv"});
  app.add_option("--max-nnz", given.make.max_nnz,
                 "maximum number of keys per slot; 0: the config's limit, divided "
                 "evenly among slots")
      .non_negative();
  app.add_option("--keys", given.keys = "contiguous",
                 "contiguous: starting at the slot's offset; hashed: scattered over 63 bits")
      .show_default()
      .one_of({"contiguous", "hashed"});
  app.add_option("--key-bits", given.key_bits,
                 "bits of a key, 32 or 64; default: input_key_type of the config, or "
                 "64")
      .one_of({32, 64});
}

void add_ground_truth_options(CommandLine& app, Arguments& given) {
  app.add_option("--interactions", given.make.interactions,
                 "fraction of the ground truth's variance that comes from products of hidden factors of the slots; a "
                 "linear model cannot learn this part")
      .show_default()
      .real_range(0.0, 1.0);
  app.add_option("--signal", given.make.signal,
                 "strength of the ground truth; with 1 the best possible AUC is "
                 "about 0.80")
      .show_default()
      .real_range(0.0, 100.0);
  app.add_option("--related", given.make.related,
                 "with several labels: correlation between the hidden weights of the first label and those of each "
                 "other label")
      .show_default()
      .real_range(-1.0, 1.0);
  app.add_option("--positive-share", given.make.positive_share, "share of labels 1").show_default();
}

void add_run_options(CommandLine& app, Arguments& given) {
  app.add_option("--threads", given.make.threads, "number of threads; the data do not depend on it").range(1, 1024);
  app.add_flag("--force", given.make.force, "overwrite data made with other parameters");
}

int main_of(int argc, char** argv) {
  Arguments given;
  given.make.threads = usable_cores();
  CommandLine app("data_generator",
                  "Generates a data set with a planted ground truth for the Data layer of a config, in its format: "
                  "Norm, Raw or Parquet.",
                  kExamples);
  // in the order of --help
  add_set_options(app, given);
  add_key_options(app, given);
  add_ground_truth_options(app, given);
  add_run_options(app, given);
  return run_tool(app, argc, argv, [&] { run(given, app); });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { return hctr::main_of(argc, argv); }
