// huge_ctr --eval, --predict and --export: commands that use a saved model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hctr/use_model.h"
#include "program/command_line.h"

namespace hctr {

class ModelCommands {
 public:
  /// Adds the commands and their own options. Must outlive parse().
  explicit ModelCommands(CommandLine&);

  bool given() const { return !eval_.empty() || !predict_.empty() || !format_.empty(); }
  /// The value of --encoding.
  EncodingChoice encoding() const;
  /// The value of --unmatched.
  bool allow_unmatched() const { return unmatched_ == "allow"; }
  /// Runs the selected command. `out`: the value of --out; `as_json`: whether --log is json. Returns the exit code.
  /// Errors: those of the commands; Error(usage).
  int run(const JobOptions&, const std::string& out, bool as_json);
  /// Values that can also be positional arguments.
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
