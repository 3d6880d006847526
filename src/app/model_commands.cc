#include "app/model_commands.h"

#include <cerrno>
#include <cstring>
#include <map>

#include "app/print_results.h"
#include "app/stop_signals.h"
#include "core/base/expect.h"
#include "program/terminal.h"

namespace hctr {
namespace {

int stopped(const JobOptions& options) {
  print_note("Stopped on request: there is no result.\n");
  return exit_code_of_stop(*options.stop);
}

}  // namespace

ModelCommands::ModelCommands(CommandLine& app) {
  app.add_option("--eval", eval_,
                 "Print the metrics of a saved model (--model) of FILE.json; with --init: the evaluation rows")
      .type_name("FILE.json");
  app.add_option("--predict", predict_, "Write the scores (--out) of a saved model (--model) of FILE.json")
      .type_name("FILE.json");
  app.add_option("--export", format_,
                 "Write a saved model into the folder --out, for other programs: a graph, or weights and tables")
      .one_of({"onnx", "npz", "safetensors", "parquet"});
  app.add_option("--model", options_.model,
                 "A run folder (its final model), a checkpoint, a folder of checkpoints (the newest), or a "
                 "snapshot_prefix (the newest model; PREFIX@ITERATION: the model of that iteration)")
      .type_name("RUN|CHECKPOINT|PREFIX");
  app.add_option("--data", options_.data, "Samples in the format of the config; default: its eval_source")
      .type_name("PATH");
  app.add_option("--encoding", encoding_,
                 "Which encoding to use (slots, hashes, dense columns, labels) if the config and the model differ: "
                 "model or config; by default a difference is an error, and sections that the config omits come "
                 "from the model. With --train: the model is the one that training starts from")
      .one_of({"model", "config"});
  app.add_option("--unmatched", unmatched_,
                 "What to do if the data do not match the model at all (no key of a slot occurred in training, no "
                 "value is in its vocabulary, or no label is positive): error (default) or allow")
      .one_of({"error", "allow"});
  app.add_option("--keep", options_.keep,
                 "Columns of Csv or Criteo data to append to the scores; separate several with commas")
      .type_name("COLUMN")
      .comma_separated();
  app.add_option("--rows", rows_, "Also write the first N samples with their scores to rows.npz, for comparison")
      .positive();
  app.add_option("--inline-tables", inline_tables_, "Tables above this size in MiB get a separate file; default: 64")
      .range(0, 1 << 20);
}

EncodingChoice ModelCommands::encoding() const {
  return encoding_.empty()      ? EncodingChoice::same
         : encoding_ == "model" ? EncodingChoice::model
                                : EncodingChoice::config;
}

int ModelCommands::run(const JobOptions& job, const std::string& out, bool as_json) {
  static_cast<JobOptions&>(options_) = job;
  options_.out = out;
  options_.config = eval_ + predict_;
  return !eval_.empty() ? evaluate_model(as_json) : !predict_.empty() ? predict_with_model() : export_the_model();
}

void ModelCommands::expect_model(const char* command) const {
  if (options_.model.empty())
    throw Error(Kind::usage, cat(command, " needs --model RUN, CHECKPOINT or PREFIX: a saved model"));
}

int ModelCommands::evaluate_model(bool as_json) {
  expect_model("--eval");
  const EvaluationSummary summary = evaluate(options_);
  if (summary.interrupted) return stopped(options_);
  if (summary.rank == 0) print_evaluation(summary, as_json);
  return 0;
}

int ModelCommands::predict_with_model() {
  expect_model("--predict");
  if (options_.out.empty())
    throw Error(Kind::usage, "--predict needs --out: a file that ends in .tsv, .csv or .parquet, or -");
  options_.rows = [](std::string_view text) {
    if (text.empty() ? !flush_output() : !print_rows(text))
      throw Error(Kind::io, cat("cannot write the scores to the standard output: ", std::strerror(errno)));
  };
  const PredictionSummary summary = predict(options_);
  if (summary.interrupted) return stopped(options_);
  if (summary.rank == 0) print_prediction(summary, options_.out);
  return 0;
}

int ModelCommands::export_the_model() {
  static const std::map<std::string, ExportFormat> formats = {{"onnx", ExportFormat::onnx},
                                                              {"npz", ExportFormat::npz},
                                                              {"safetensors", ExportFormat::safetensors},
                                                              {"parquet", ExportFormat::parquet}};
  ExportOptions options;
  static_cast<ModelOptions&>(options) = options_;
  options.out = options_.out;
  options.format = formats.at(format_);
  if (options.model.empty())
    options.model = subject_;
  else
    options.config = subject_;
  if (options.model.empty() || (options.config.empty() && options.model.ends_with(".json")))
    throw Error(Kind::usage,
                "--export needs a saved model: a run folder, a checkpoint or a snapshot_prefix; with its config: "
                "huge_ctr --export onnx FILE.json --model PREFIX --out DIR");
  if (options.out.empty() || options.out == "-")
    throw Error(Kind::usage, "--export needs --out: a new or empty folder");
  if (options.format != ExportFormat::onnx && (rows_ || inline_tables_))
    throw Error(Kind::usage, cat(rows_ ? "--rows" : "--inline-tables", " requires --export onnx"));
  options.rows = rows_.value_or(0);
  if (inline_tables_) options.most_inline_bytes = *inline_tables_ << 20;
  const ExportSummary summary = export_model(options);
  if (summary.interrupted) return stopped(options);
  if (summary.rank == 0) print_export(summary, options.out.string());
  return 0;
}

}  // namespace hctr
