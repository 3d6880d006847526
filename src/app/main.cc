// The program: command line, signals, exit codes. The only place that catches errors.
#include <cmath>
#include <cstdio>
#include <iostream>

#include "app/stop_signals.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/process_end.h"
#include "base/progress.h"
#include "config/command_line.h"
#include "hctr/solver.h"
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

void print_summary(const hctr::TrainSummary& summary) {
  const auto rounded = [](double value) {
    if (std::isnan(value)) return std::string("not a number");
    char text[32];
    std::snprintf(text, sizeof text, "%.6f", value);
    return std::string(text);
  };
  std::cout << "\n"
            << (summary.interrupted ? "Stopped on request" : "Done") << ": " << summary.iterations << " iterations, "
            << hctr::with_unit_prefix(static_cast<double>(summary.samples)) << " samples in "
            << hctr::readable_time(summary.seconds) << " (" << hctr::with_unit_prefix(summary.samples_per_second)
            << " samples/s) on " << summary.device << "\n"
            << "  loss of the last batch: " << rounded(summary.final_loss) << "\n";
  for (const auto& [name, value] : summary.metrics) {
    std::cout << "  " << hctr::printable(name) << ": " << rounded(value);
    if (const auto best = summary.best_possible.find(name); best != summary.best_possible.end())
      std::cout << " (best possible on this data: " << rounded(best->second) << ")";
    std::cout << "\n";
  }
  for (const auto& file : summary.model_files) std::cout << "  model: " << file.string() << "\n";
  std::cout << "  run folder: " << summary.run_dir.string() << std::endl;
}

int run(int argc, char** argv) {
  check_for_pasted_dashes(argc, argv);
  hctr::TrainOptions options;
  std::string train_file, check_file, topic, device = "auto";
  hctr::CommandLine app("huge_ctr", "Trains click-through-rate models as a JSON file describes them.",
                        "Exit codes: 0 done, 1 a bug, 2 command line, 3 config, 4 data, 5 files, 6 device or memory, 7 "
                        "other ranks, 75 stopped by "
                        "SIGTERM, SIGUSR1 or SIGHUP with the model saved, 130 the same by SIGINT (Ctrl-C).\n"
                        "Manual: docs/ in the source tree.");
  const hctr::CommandOption train =
      app.add_option("--train", train_file, "Train the model that FILE.json describes").type_name("FILE.json");
  app.add_option("--check", check_file,
                 "Check FILE.json: names, values and shapes; print the layer table. Needs no GPU and no data")
      .type_name("FILE.json")
      .excludes(train);
  app.add_option(
         "--explain", topic,
         "Print the manual's entry of a section, layer, optimizer, metric or data format; layers, config: all of them")
      .type_name("NAME");
  app.add_option("--device", device, "auto: a GPU if there is a usable one")
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
  if (!topic.empty()) {
    std::cout << hctr::explain(topic);
    return 0;
  }
  if (train_file.empty() && check_file.empty())
    throw hctr::Error(hctr::Kind::usage,
                      "nothing to do: give --train FILE.json or --check FILE.json; huge_ctr --help lists all there is");

  if (!check_file.empty()) {
    const std::string table = hctr::check(check_file, options.strict,
                                          [](std::string_view line) { std::cerr << hctr::printable(line) << "\n"; });
    std::cout << hctr::printable(table) << check_file << " is right.\n";
    return 0;
  }
  options.config = train_file;
  options.device = device == "cpu"    ? hctr::DeviceChoice::cpu
                   : device == "cuda" ? hctr::DeviceChoice::cuda
                                      : hctr::DeviceChoice::automatic;
  options.stop = &hctr::catch_stop_signals();
  const hctr::TrainSummary summary = hctr::train(options);
  if (summary.rank == 0) print_summary(summary);
  return summary.interrupted ? hctr::exit_code_of_stop(summary.stop_signal) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  hctr::end_process(hctr::run_program([&] { return run(argc, argv); }));
}
