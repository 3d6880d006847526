// The program: command line, signals, exit codes. The only place that catches errors.
#include <algorithm>
#include <string>
#include <vector>

#include "app/check_command.h"
#include "app/explain_step.h"
#include "app/init_command.h"
#include "app/model_commands.h"
#include "app/print_results.h"
#include "app/refused_memory.h"
#include "app/report_command.h"
#include "app/restarts.h"
#include "app/stop_signals.h"
#include "config/sections/config_manual.h"
#include "core/base/expect.h"
#include "hctr/solver.h"
#include "program/command_line.h"
#include "program/process_end.h"
#include "program/program_surroundings.h"
#include "program/terminal.h"

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

/// The commands that an option belongs to. Those that are not here belong to all that read a config.
struct Belongs {
  const char* option;
  std::vector<const char*> commands;
};
const Belongs kBelongs[] = {
    {"--run-dir", {"--train"}},
    {"--resume", {"--train"}},
    {"--seed", {"--train"}},
    {"--max-iter", {"--train"}},
    {"--profile", {"--train"}},
    {"--metrics-file", {"--train"}},
    {"--restarts", {"--train"}},
    {"--restart-wait", {"--train"}},
    {"--log", {"--train", "--eval"}},
    {"--model", {"--eval", "--predict", "--export"}},
    {"--data", {"--eval", "--predict", "--export"}},
    {"--encoding", {"--train", "--eval", "--predict", "--export"}},
    {"--unmatched", {"--train", "--eval", "--predict"}},
    {"--out", {"--predict", "--init", "--export", "--report"}},
    {"--keep", {"--predict"}},
    {"--rows", {"--export"}},
    {"--inline-tables", {"--export"}},
    {"--label", {"--init"}},
    {"--positive", {"--init"}},
    {"--leave-out", {"--init"}},
    {"--category", {"--init"}},
    {"--number", {"--init"}},
    {"--list", {"--init"}},
    {"--template", {"--init"}},
    {"--check-data", {"--check"}},
    {"--format", {"--check"}},
    {"--gpu-memory", {"--check"}},
    {"--gpus", {"--check"}},
    {"--gpu-name", {"--check"}},
    {"--no-scores", {"--report"}},
    {"--importance", {"--report"}},
    {"--score-rows", {"--report"}},
};

std::string list_of(const std::vector<const char*>& commands) {
  std::string text;
  for (size_t i = 0; i < commands.size(); ++i)
    text += hctr::cat(i == 0 ? "" : i + 1 < commands.size() ? ", " : " and ", commands[i]);
  return text;
}

/// Errors: Error(usage) for an option without its command, and for two commands.
void expect_one_command(const hctr::CommandLine& app) {
  const auto given = [&](const char* name) { return app.count(name) > 0; };
  std::string first;
  for (const char* command : {"--init", "--train", "--check", "--eval", "--predict", "--export", "--report"}) {
    if (!given(command) || (first == "--init" && std::string(command) == "--eval")) continue;  // its evaluation rows
    if (!first.empty())
      throw hctr::Error(hctr::Kind::usage, hctr::cat(first, " and ", command, " are two commands: give one"));
    first = command;
  }
  for (const Belongs& each : kBelongs)
    if (given(each.option) && std::none_of(each.commands.begin(), each.commands.end(), given))
      throw hctr::Error(hctr::Kind::usage,
                        hctr::cat(each.option, " belongs to ", list_of(each.commands), ", which is not there"));
}

int run_train(hctr::TrainOptions options, bool json) {
  hctr::MemoryReserve reserve;
  const hctr::RefusedMemory refused(reserve);
  options.reserve = &reserve;
  if (json)
    options.lines = [](std::string_view line) {
      hctr::print_json(hctr::cat(line, "\n"));
      hctr::flush_output();
    };
  const hctr::TrainSummary summary = hctr::train(options);
  if (summary.rank == 0) print_summary(summary, json);
  return summary.interrupted ? hctr::exit_code_of_stop(summary.stop_signal) : 0;
}

int run(int argc, char** argv) {
  check_for_pasted_dashes(argc, argv);
  std::string train, topic, device = "auto", log = "text", out;
  int restarts = 0;
  hctr::TrainOptions options;
  hctr::CommandLine app(
      "huge_ctr", "Trains click-through-rate models as a JSON file describes them.",
      "Exit codes: 0 done, 1 a bug, 2 command line, 3 config, 4 data, 5 files, 6 device or memory, 7 "
      "other ranks, 75 stopped by "
      "SIGTERM, SIGUSR1 or SIGHUP with a checkpoint or the model saved, 130 the same by SIGINT (Ctrl-C).\n"
      "Manual: docs/ in the source tree.");
  app.add_option("--train", train, "Train the model that FILE.json describes").type_name("FILE.json");
  hctr::CheckCommand check(app);
  hctr::ModelCommands with_model(app);
  hctr::InitCommand init(app);
  hctr::ReportCommand report(app);
  app.add_option("--out", out,
                 "Of --predict: a file that ends in .tsv, .csv or .parquet, or - for the standard output; of --init: "
                 "the config, on the standard output if left out; of --export: a folder that is new or empty; of "
                 "--report: a file that ends in .html")
      .type_name("FILE|DIR|-");
  app.add_option("--log", log,
                 "Of --train and --eval: progress and metrics as lines of text, or as lines of JSON on the standard "
                 "output")
      .one_of({"text", "json"})
      .show_default();
  app.add_option(
         "--explain", topic,
         "Print the manual's entry of a section, layer, optimizer, metric or data format; layers, config: all of them; "
         "step FILE.json: the plan of a training step, of the GPU there is or of an H200, or of --device cpu")
      .type_name("NAME");
  app.add_option("--set", options.changes,
                 "Change a field of the config: solver.batchsize=1024, layers.fc1.fc_param.num_output=64; null leaves "
                 "it out. Several times for several fields")
      .type_name("FIELD=VALUE");
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
  app.add_option("--metrics-file", options.metrics_file,
                 "Of --train: a text file for Prometheus, replaced at each line of metrics")
      .type_name("FILE");
  app.add_option("--comm-timeout", options.comm_timeout,
                 "Seconds that ranks wait for another rank in a step; 0: without limit")
      .range(0, 86400)
      .show_default();
  app.add_option("--join-timeout", options.join_timeout,
                 "Seconds that processes which are joined without MPI wait for each other at the start")
      .range(1, 86400)
      .show_default();
  app.add_option("--peer-timeout", options.peer_timeout,
                 "Seconds without a sign of life after which another process counts as lost")
      .range(2, 86400)
      .show_default();
  app.add_option("--restarts", restarts,
                 "Start training again when it has failed or was killed, at most this often; it goes on from the last "
                 "checkpoint, without processes that do not come back")
      .range(0, 1000)
      .show_default();
  app.add_option("--restart-wait", options.restart_wait,
                 "Seconds that a restart waits for processes that may be lost, before it goes on without them")
      .range(1, 86400)
      .show_default();
  app.add_flag("--strict", options.strict, "Warnings about the config become errors");
  app.add_flag("--profile", options.profile,
               "Measure where the time of a step goes, once some steps have run: by layer and part, with the share of "
               "what this machine reaches; also written to profile.json in the run folder");
  app.add_flag("--sync-launches", options.sync_launches,
               "Wait after every GPU kernel, to find the one that fails (slow)");
  if (!app.parse(argc, argv)) return 0;
  options.device = device == "cpu"    ? hctr::DeviceChoice::cpu
                   : device == "cuda" ? hctr::DeviceChoice::cuda
                                      : hctr::DeviceChoice::automatic;
  options.surroundings = hctr::program_surroundings();
  if (topic == "step") {
    hctr::print(hctr::explain_step_of(with_model.subject(), options));
    return 0;
  }
  with_model.expect_subject();
  if (!topic.empty()) {
    hctr::print(hctr::explain(topic));
    return 0;
  }
  expect_one_command(app);
  options.config = train;
  options.command.assign(argv, argv + argc);
  if (check.given()) return check.run(options);
  if (init.given()) return init.run(with_model.eval(), out);
  if (restarts > 0)
    if (const auto code = hctr::keep_training(options, restarts)) return *code;
  options.stop = &hctr::catch_stop_signals();
  if (report.given()) return report.run(options, out);
  options.encoding = with_model.encoding();
  options.allow_unmatched = with_model.allow_unmatched();
  if (with_model.given()) return with_model.run(options, out, log == "json");
  if (!train.empty()) {
    if (options.encoding == hctr::EncodingChoice::model)
      throw hctr::Error(hctr::Kind::usage,
                        "--encoding model belongs to --eval, --predict and --export; a run encodes as its config says");
    return run_train(options, log == "json");
  }
  throw hctr::Error(hctr::Kind::usage,
                    "nothing to do: give --train, --check, --eval or --predict with FILE.json, --export with a model, "
                    "--init with a table, or --report with a run folder; huge_ctr --help lists all there is");
}

}  // namespace

int main(int argc, char** argv) {
  hctr::end_process(hctr::run_program([&] { return hctr::run_until_stopped([&] { return run(argc, argv); }); }));
}
