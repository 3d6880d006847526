// huge_ctr --eval, --predict and --export: what is done with a saved model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hctr/use_model.h"
#include "program/command_line.h"

namespace hctr {

class ModelCommands {
 public:
  /// Adds the commands and the options that belong to them alone. Outlives parse().
  explicit ModelCommands(CommandLine&);

  bool given() const { return !eval_.empty() || !predict_.empty() || !format_.empty(); }
  /// The value of --encoding.
  EncodingChoice encoding() const;
  /// The value of --unmatched.
  bool allow_unmatched() const { return unmatched_ == "allow"; }
  /// `out`: the value of --out; `as_json`: whether --log is json. Returns the exit code. Errors: those of the commands;
  /// Error(usage).
  int run(const JobOptions&, const std::string& out, bool as_json);
  /// Those that a command takes by position.
  std::string& eval_config() { return eval_; }
  std::string& predict_config() { return predict_; }
  std::string& export_format() { return format_; }
  std::string& subject() { return subject_; }

 private:
  int evaluate_model(bool as_json);
  int predict_with_model();
  int export_the_model();
  void expect_model(const char* command) const;

  std::string eval_, predict_, encoding_, format_, unmatched_;
  std::string subject_;
  std::optional<int64_t> rows_, inline_tables_;
  PredictOptions options_;
};

}  // namespace hctr
