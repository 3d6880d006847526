// The program: command line, signals, exit codes. The only place that catches errors.
#include <iostream>

#include "app/print_results.h"
#include "app/stop_signals.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/process_end.h"
#include "config/command_line.h"
#include "hctr/solver.h"
#include "hctr/use_model.h"
#include "model/manual.h"

namespace {

/// Options pasted from formatted documents may begin with an en dash or em dash.
void check_for_pasted_dashes(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::string mended = word;
    bool found = false;
    for (const char* dash : {"\xe2\x80\x93", "\xe2\x80\x94"})  // en dash, em dash
      for (size_t at; (at = mended.find(dash)) < 3;) {
        mended.replace(at, 3, "-");
        found = true;
      }
    if (!found) continue;
    const size_t name = mended.find_first_not_of('-');
    throw hctr::Error(hctr::Kind::usage,
                      hctr::cat("'", word, "' starts with a typographic dash instead of two minus signs; type --",
                                name == mended.npos ? "" : mended.substr(name)));
  }
}

struct Words {
  std::string train, check, eval, predict, topic, device = "auto", log = "text";
};

/// An option that was given without the command that it belongs to.
void expect_command(const hctr::CommandLine& app, bool given, std::initializer_list<const char*> options,
                    const char* commands) {
  for (const char* option : options)
    if (!given && app.count(option) > 0)
      throw hctr::Error(hctr::Kind::usage, hctr::cat(option, " belongs to ", commands, ", which is not there"));
}

void expect_model(const hctr::ModelOptions& options, const char* command) {
  if (options.model.empty())
    throw hctr::Error(hctr::Kind::usage, hctr::cat(command, " needs --model RUN, CHECKPOINT or PREFIX: a saved model"));
}

int stopped(const hctr::JobOptions& options) {
  std::cerr << "Stopped on request: there is no result.\n";
  return hctr::exit_code_of_stop(*options.stop);
}

int run_evaluate(const hctr::ModelOptions& options, bool as_json) {
  expect_model(options, "--eval");
  const hctr::EvaluationSummary summary = hctr::evaluate(options);
  if (summary.interrupted) return stopped(options);
  if (summary.rank == 0) print_evaluation(summary, as_json);
  return 0;
}

int run_predict(const hctr::PredictOptions& options) {
  expect_model(options, "--predict");
  if (options.out.empty())
    throw hctr::Error(hctr::Kind::usage, "--predict needs --out: a file that ends in .tsv, .csv or .parquet, or -");
  const hctr::PredictionSummary summary = hctr::predict(options);
  if (summary.interrupted) return stopped(options);
  if (summary.rank == 0) print_prediction(summary, options.out);
  return 0;
}

int run(int argc, char** argv) {
  check_for_pasted_dashes(argc, argv);
  Words words;
  hctr::TrainOptions options;
  hctr::PredictOptions with_model;
  hctr::CommandLine app("huge_ctr", "Trains click-through-rate models as a JSON file describes them.",
                        "Exit codes: 0 done, 1 a bug, 2 command line, 3 config, 4 data, 5 files, 6 device or memory, 7 "
                        "other ranks, 75 stopped by "
                        "SIGTERM, SIGUSR1 or SIGHUP with the model saved, 130 the same by SIGINT (Ctrl-C).\n"
                        "Manual: docs/ in the source tree.");
  const hctr::CommandOption train =
      app.add_option("--train", words.train, "Train the model that FILE.json describes").type_name("FILE.json");
  const hctr::CommandOption check =
      app.add_option("--check", words.check,
                     "Check FILE.json: names, values and shapes; print the layer table. Needs no GPU and no data")
          .type_name("FILE.json")
          .excludes(train);
  const hctr::CommandOption eval =
      app.add_option("--eval", words.eval, "Print the metrics of a saved model (--model) of FILE.json")
          .type_name("FILE.json")
          .excludes(train)
          .excludes(check);
  app.add_option("--predict", words.predict, "Write the scores (--out) that a saved model (--model) of FILE.json gives")
      .type_name("FILE.json")
      .excludes(train)
      .excludes(check)
      .excludes(eval);
  app.add_option("--model", with_model.model,
                 "A run folder (its final model), a checkpoint (FOLDER: the newest in it), or a snapshot_prefix: the "
                 "newest of its models, or that of PREFIX@ITERATION")
      .type_name("RUN|CHECKPOINT|PREFIX");
  app.add_option("--data", with_model.data, "Samples in the format of the config, instead of its eval_source")
      .type_name("PATH");
  app.add_option("--out", with_model.out,
                 "Of --predict: a file that ends in .tsv, .csv or .parquet, or - for the standard output")
      .type_name("FILE|-");
  app.add_option("--keep", with_model.keep,
                 "Of --predict: columns of Csv or Criteo data that stand behind the scores; several with commas")
      .type_name("COLUMN")
      .comma_separated();
  app.add_option("--log", words.log, "Of --eval: metrics as lines of text, or everything as a line of JSON")
      .one_of({"text", "json"})
      .show_default();
  app.add_option(
         "--explain", words.topic,
         "Print the manual's entry of a section, layer, optimizer, metric or data format; layers, config: all of them")
      .type_name("NAME");
  app.add_option("--device", words.device, "auto: a GPU if there is a usable one")
      .one_of({"auto", "cpu", "cuda"})
      .show_default();
  app.add_option("--run-dir", options.run_dir,
                 "Folder for metrics, summary and final model; an earlier run in it is moved to DIR.1; default: a new "
                 "one under runs/");
  app.add_option("--resume", options.resume,
                 "Go on from a checkpoint: its folder, or latest for the newest in the folder that the config names; "
                 "where that has none, training starts anew")
      .type_name("FOLDER|latest");
  app.add_option("--threads", options.threads, "CPU threads for operators; default: all cores").range(1, 1024);
  app.add_option("--seed", options.seed, "Instead of the config's seed");
  app.add_option("--max-iter", options.max_iter, "Instead of the config's number of iterations").positive();
  app.add_option("--comm-timeout", options.comm_timeout,
                 "Seconds that ranks wait for another rank in a step; 0: without limit")
      .range(0, 86400)
      .show_default();
  app.add_flag("--strict", options.strict, "Warnings about the config become errors");
  app.add_flag("--profile", options.profile,
               "Measure where the time of a step goes, once some steps have run: by layer and part, with the share of "
               "what this machine reaches; also written to profile.json in the run folder");
  app.add_flag("--sync-launches", options.sync_launches,
               "Wait after every GPU kernel, to find the one that fails (slow)");
  if (!app.parse(argc, argv)) return 0;
  if (!words.topic.empty()) {
    std::cout << hctr::explain(words.topic);
    return 0;
  }
  const bool uses_model = !words.eval.empty() || !words.predict.empty();
  if (words.train.empty() && words.check.empty() && !uses_model)
    throw hctr::Error(hctr::Kind::usage,
                      "nothing to do: give --train, --check, --eval or --predict with FILE.json; huge_ctr --help lists "
                      "all there is");
  expect_command(app, !uses_model, {"--run-dir", "--resume", "--seed", "--max-iter", "--profile"}, "--train");
  expect_command(app, uses_model, {"--model", "--data"}, "--eval and --predict");
  expect_command(app, !words.eval.empty(), {"--log"}, "--eval");
  expect_command(app, !words.predict.empty(), {"--out", "--keep"}, "--predict");

  if (!words.check.empty()) {
    const std::string table = hctr::check(words.check, options.strict,
                                          [](std::string_view line) { std::cerr << hctr::printable(line) << "\n"; });
    std::cout << hctr::printable(table) << words.check << " is right.\n";
    return 0;
  }
  options.device = words.device == "cpu"    ? hctr::DeviceChoice::cpu
                   : words.device == "cuda" ? hctr::DeviceChoice::cuda
                                            : hctr::DeviceChoice::automatic;
  options.stop = &hctr::catch_stop_signals();
  if (uses_model) {
    static_cast<hctr::JobOptions&>(with_model) = options;
    with_model.config = words.eval + words.predict;
    return words.eval.empty() ? run_predict(with_model) : run_evaluate(with_model, words.log == "json");
  }
  options.config = words.train;
  const hctr::TrainSummary summary = hctr::train(options);
  if (summary.rank == 0) print_summary(summary);
  return summary.interrupted ? hctr::exit_code_of_stop(summary.stop_signal) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  hctr::end_process(hctr::run_program([&] { return run(argc, argv); }));
}
