// The main program: command line, signals, exit codes. Only this file catches errors.
#include <algorithm>
#include <string>
#include <vector>

#include "app/check_command.h"
#include "app/explain_step.h"
#include "app/explain_store.h"
#include "app/init_command.h"
#include "app/model_commands.h"
#include "app/print_results.h"
#include "app/refused_memory.h"
#include "app/report_command.h"
#include "app/restarts.h"
#include "app/serve_command.h"
#include "app/stop_signals.h"
#include "app/store_command.h"
#include "app/verbs.h"
#include "config/problems.h"
#include "config/sections/config_manual.h"
#include "core/base/expect.h"
#include "hctr/solver.h"
#include "program/command_line.h"
#include "program/process_end.h"
#include "program/program_surroundings.h"
#include "program/terminal.h"

namespace {

using hctr::cat;

/// Errors: Error(usage) for an argument that begins with an en dash or em dash, which options copied from formatted
/// documents may have. The message gives the option with minus signs.
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
                      cat("'", word, "' starts with a typographic dash instead of two minus signs; type --",
                          name == mended.npos ? "" : mended.substr(name)));
  }
}

/// The commands that accept an option. Options that are not listed are accepted by all commands that read a config.
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
    {"--store-model", {"huge_ctr store"}},
    {"--table", {"huge_ctr store"}},
    {"--keys", {"huge_ctr store"}},
    {"--slot", {"huge_ctr store"}},
    {"--model-control", {"huge_ctr serve"}},
    {"--load-model", {"huge_ctr serve"}},
    {"--poll-seconds", {"huge_ctr serve"}},
    {"--address", {"huge_ctr serve"}},
    {"--http-port", {"huge_ctr serve"}},
    {"--grpc-port", {"huge_ctr serve"}},
    {"--metrics-port", {"huge_ctr serve"}},
    {"--http-threads", {"huge_ctr serve"}},
    {"--instances", {"huge_ctr serve"}},
    {"--max-batch", {"huge_ctr serve"}},
    {"--batch-delay", {"huge_ctr serve"}},
    {"--max-queue", {"huge_ctr serve"}},
    {"--queue-timeout", {"huge_ctr serve"}},
    {"--max-body", {"huge_ctr serve"}},
    {"--max-connections", {"huge_ctr serve"}},
    {"--exit-timeout", {"huge_ctr serve"}},
    {"--shared-memory", {"huge_ctr serve"}},
    {"--cuda-shared-memory", {"huge_ctr serve"}},
    {"--store", {"huge_ctr serve"}},
    {"--verify", {"huge_ctr serve"}},
};

std::string list_of(const std::vector<const char*>& commands) {
  std::string text;
  for (size_t i = 0; i < commands.size(); ++i)
    text += cat(i == 0 ? "" : i + 1 < commands.size() ? ", " : " or ", commands[i]);
  return text;
}

/// Errors: Error(usage) for an option without its command, and for two commands.
void expect_one_command(const hctr::CommandLine& app) {
  const auto given = [&](const std::string& name) {
    if (!name.starts_with("--")) return app.verb() && cat("huge_ctr ", app.verb()->name) == name;
    return app.count(name) > 0 || (app.verb() && cat("--", app.verb()->name) == name);
  };
  std::string first;
  for (const char* command : {"--init", "--train", "--check", "--eval", "--predict", "--export", "--report"}) {
    // with --init, --eval is not a command: it names the evaluation rows
    if (!given(command) || (first == "--init" && std::string(command) == "--eval")) continue;
    if (!first.empty())
      throw hctr::Error(hctr::Kind::usage, cat(first, " and ", command, " are two commands; give one"));
    first = command;
  }
  if (app.verb()) {
    for (const std::string& option : app.given())
      if (!app.verb()->has(option))
        throw hctr::Error(hctr::Kind::usage, cat("huge_ctr ", app.verb()->name, " has no option ", option,
                                                 "; huge_ctr ", app.verb()->name, " --help lists them"));
    return;
  }
  for (const Belongs& each : kBelongs)
    if (given(each.option) && std::none_of(each.commands.begin(), each.commands.end(), given))
      throw hctr::Error(hctr::Kind::usage, cat(each.option, " requires ", list_of(each.commands)));
}

[[noreturn]] void refuse_argument(const hctr::CommandLine& app, const std::string& word) {
  if (app.verb())
    throw hctr::Error(hctr::Kind::usage, cat("huge_ctr ", app.verb()->name, " has no argument '", word, "'; huge_ctr ",
                                             app.verb()->name, " --help lists its options"));
  std::vector<std::string> names;
  for (const hctr::Verb& verb : app.verbs()) names.push_back(verb.name);
  throw hctr::Error(hctr::Kind::usage, cat("unexpected argument '", word, "'", hctr::did_you_mean(word, names),
                                           "; huge_ctr --help lists the commands"));
}

/// Assigns the positional arguments of a command: the first ones to the elements of `to`, further ones to `more`, which
/// may be null. Errors: Error(usage) for too many arguments, or for fewer than `needed`.
void place_arguments(const hctr::CommandLine& app, const std::vector<std::string>& given,
                     const std::vector<std::string*>& to, size_t needed, std::vector<std::string>* more = nullptr) {
  const hctr::Verb* const verb = app.verb();
  if (given.size() < needed)
    throw hctr::Error(hctr::Kind::usage, cat("huge_ctr ", verb->name, " needs ", verb->arguments, "; huge_ctr ",
                                             verb->name, " --help lists its options"));
  for (size_t i = 0; i < given.size(); ++i)
    if (i < to.size())
      *to[i] = given[i];
    else if (more)
      more->push_back(given[i]);
    else
      refuse_argument(app, given[i]);
}

int run_train(hctr::TrainOptions options, bool json) {
  hctr::MemoryReserve reserve;
  const hctr::RefusedMemory refused(reserve);
  options.reserve = &reserve;
  if (json)
    options.lines = [](std::string_view line) {
      hctr::print_json(cat(line, "\n"));
      hctr::flush_output();
    };
  const hctr::TrainSummary summary = hctr::train(options);
  if (summary.rank == 0) print_summary(summary, json);
  return summary.interrupted ? hctr::exit_code_of_stop(summary.stop_signal) : 0;
}

void add_training_options(hctr::CommandLine& app, hctr::TrainOptions& options, int& restarts) {
  app.add_option("--run-dir", options.run_dir,
                 "Folder for metrics, summary and final model; an earlier run in this folder is moved to DIR.1; "
                 "default: a new folder under runs/")
      .type_name("DIR");
  app.add_option("--resume", options.resume,
                 "Resume from a checkpoint: its folder, or latest for the newest checkpoint in the config's "
                 "checkpoint folder; if no checkpoint exists, training starts from the beginning")
      .type_name("FOLDER|latest");
  app.add_option("--threads", options.threads, "CPU threads for operators; default: all cores").range(1, 1024);
  app.add_option("--seed", options.seed, "Replaces the config's seed");
  app.add_option("--max-iter", options.max_iter, "Replaces the config's number of iterations").positive();
  app.add_option("--metrics-file", options.metrics_file, "A text file for Prometheus, rewritten at each metrics line")
      .type_name("FILE");
  app.add_option("--comm-timeout", options.comm_timeout,
                 "Seconds that ranks wait for another rank in a step; 0: no timeout")
      .range(0, 86400)
      .show_default();
  app.add_option("--join-timeout", options.join_timeout,
                 "Seconds that processes joined without MPI wait for each other at the start")
      .range(1, 86400)
      .show_default();
  app.add_option("--peer-timeout", options.peer_timeout,
                 "Seconds without a heartbeat after which another process counts as lost")
      .range(2, 86400)
      .show_default();
  app.add_option("--restarts", restarts,
                 "Maximum number of restarts after a failure or kill; a restart resumes from the last checkpoint "
                 "and drops lost processes")
      .range(0, 1000)
      .show_default();
  app.add_option("--restart-wait", options.restart_wait,
                 "Seconds that a restart waits for missing processes before training continues without them")
      .range(1, 86400)
      .show_default();
  app.add_flag("--strict", options.strict, "Warnings about the config become errors");
  app.add_flag("--profile", options.profile,
               "After some steps, measure the time of each layer and part of a step, relative to the peak rates of "
               "this machine; also written to profile.json in the run folder");
  app.add_flag("--sync-launches", options.sync_launches,
               "Synchronize after every GPU kernel, to find a failing kernel (slow)");
}

/// The values of options that several commands have, and of positional arguments.
struct Given {
  std::string train, topic, device = "auto", log = "text", out;
  std::vector<std::string> arguments;
  std::string step_config;  // the argument CONFIG of "explain step CONFIG"
  std::vector<std::string> of_store = std::vector<std::string>(2), of_serve;
  int restarts = 0;
  hctr::TrainOptions options;
};

/// The commands that have options of their own.
struct Commands {
  explicit Commands(hctr::CommandLine& app)
      : check(app), with_model(app), init(app), report(app), store(app), serve(app) {}

  hctr::CheckCommand check;
  hctr::ModelCommands with_model;
  hctr::InitCommand init;
  hctr::ReportCommand report;
  hctr::StoreCommand store;
  hctr::ServeCommand serve;
};

void add_common_options(hctr::CommandLine& app, Given& given) {
  app.add_option("--out", given.out,
                 "With --predict: a file that ends in .tsv, .csv or .parquet, or - for the standard output; with "
                 "--init: the config, by default on the standard output; with --export: a new or empty folder; with "
                 "--report: a file that ends in .html")
      .type_name("FILE|DIR|-");
  app.add_option("--log", given.log,
                 "Progress and metrics as lines of text, or as lines of JSON on the standard "
                 "output")
      .one_of({"text", "json"})
      .show_default();
  app.add_option(
         "--explain", given.topic,
         "Print the manual's entry of a section, layer, optimizer, metric or data format; layers: all layers; "
         "config: all sections; store: the fields of a store.json; step FILE.json: the plan of a training step, "
         "for this machine's GPU, else an H200, or with --device cpu for the CPU")
      .type_name("NAME");
  app.add_option("--set", given.options.changes,
                 "Change a field of the config: solver.batchsize=1024, layers.fc1.fc_param.num_output=64; null removes "
                 "it. May be repeated")
      .type_name("FIELD=VALUE");
  app.add_option("--device", given.device, "auto: a GPU if a usable GPU exists, else the CPU")
      .one_of({"auto", "cpu", "cuda"})
      .show_default();
}

/// Assigns the positional arguments to the values of the command's options.
void place_arguments_of_command(const hctr::CommandLine& app, Commands& commands, Given& given) {
  const std::string verb = app.verb() ? app.verb()->name : "";
  const auto place = [&](const std::vector<std::string*>& to, size_t needed, std::vector<std::string>* more = nullptr) {
    place_arguments(app, given.arguments, to, needed, more);
  };
  hctr::ModelCommands& with_model = commands.with_model;
  if (verb == "train") place({&given.train}, 1);
  if (verb == "check") place({&commands.check.config()}, 1);
  if (verb == "eval") place({&with_model.eval_config()}, 1);
  if (verb == "predict") place({&with_model.predict_config()}, 1);
  if (verb == "export") place({&with_model.export_format(), &with_model.subject()}, 1);
  if (verb == "init") place({&commands.init.data()}, 1);
  if (verb == "report") place({}, 1, &commands.report.runs());
  if (verb == "store") place({&given.of_store[0], &given.of_store[1]}, 2);
  if (verb == "serve") place({}, 1, &given.of_serve);
  if (verb == "explain") place({&given.topic, &given.step_config}, 1);
  if (verb.empty()) {
    std::vector<std::string*> to;
    if (!with_model.export_format().empty()) to.push_back(&with_model.subject());
    if (given.topic == "step") to.push_back(&given.step_config);
    place(to, 0);
  }
}

/// Returns the exit code.
int run_command(const hctr::CommandLine& app, Commands& commands, Given& given) {
  hctr::TrainOptions& options = given.options;
  const std::string verb = app.verb() ? app.verb()->name : "";
  if (verb == "store") return commands.store.run(given.of_store, options.surroundings);
  if (verb == "serve") return commands.serve.run(given.of_serve, options);
  if (commands.check.given()) return commands.check.run(options);
  if (commands.init.given()) return commands.init.run(commands.with_model.eval_config(), given.out);
  if (given.restarts > 0)
    if (const auto code = hctr::keep_training(options, given.restarts)) return *code;
  options.stop = &hctr::catch_stop_signals();
  if (commands.report.given()) return commands.report.run(options, given.out);
  options.encoding = commands.with_model.encoding();
  options.allow_unmatched = commands.with_model.allow_unmatched();
  const bool as_json = given.log == "json";
  if (commands.with_model.given()) return commands.with_model.run(options, given.out, as_json);
  if (!given.train.empty()) {
    if (options.encoding == hctr::EncodingChoice::model)
      throw hctr::Error(hctr::Kind::usage,
                        "--encoding model requires --eval, --predict or --export; training uses the config's encoding");
    return run_train(options, as_json);
  }
  throw hctr::Error(hctr::Kind::usage,
                    "nothing to do: give a command, such as huge_ctr train FILE.json; huge_ctr --help lists them");
}

int run(int argc, char** argv) {
  check_for_pasted_dashes(argc, argv);
  Given given;
  hctr::CommandLine app(
      "huge_ctr", "Trains click-through-rate models that a JSON file describes, and uses the trained models.",
      "All commands except store and serve are also options: huge_ctr --train FILE.json is huge_ctr train "
      "FILE.json.\nExit codes: 0 done, 1 a bug, 2 command line, 3 config, 4 data, 5 files, 6 device or memory, 7 "
      "other ranks, 75 stopped by SIGTERM, SIGUSR1 or SIGHUP after saving a checkpoint or the model, 130 stopped "
      "by SIGINT (Ctrl-C) after saving.\nManual: docs/ in the source tree.");
  app.add_option("ARGUMENT", given.arguments, "What a command takes");
  app.set_verbs(hctr::verbs_of_huge_ctr());
  app.add_option("--train", given.train, "Train the model that FILE.json describes").type_name("FILE.json");
  Commands commands(app);
  add_common_options(app, given);
  add_training_options(app, given.options, given.restarts);
  if (!app.parse(argc, argv)) return 0;
  place_arguments_of_command(app, commands, given);
  hctr::TrainOptions& options = given.options;
  options.device = given.device == "cpu"    ? hctr::DeviceChoice::cpu
                   : given.device == "cuda" ? hctr::DeviceChoice::cuda
                                            : hctr::DeviceChoice::automatic;
  options.surroundings = hctr::program_surroundings();
  if (given.topic == "step") {
    hctr::print(hctr::explain_step_of(given.step_config, options));
    return 0;
  }
  if (!given.topic.empty()) {
    hctr::print(hctr::explain(given.topic, hctr::store_entries()));
    return 0;
  }
  expect_one_command(app);
  options.config = given.train;
  options.command.assign(argv, argv + argc);
  return run_command(app, commands, given);
}

}  // namespace

int main(int argc, char** argv) {
  hctr::end_process(hctr::run_program([&] { return hctr::run_until_stopped([&] { return run(argc, argv); }); }));
}
