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
  /// The argument of --eval, which also belongs to --init.
  const std::string& eval() const { return eval_; }
  /// Of --encoding.
  EncodingChoice encoding() const;
  /// Of --unmatched.
  bool allow_unmatched() const { return unmatched_ == "allow"; }
  /// `out`: of --out; `as_json`: of --log. Returns the exit code. Errors: those of the commands; Error(usage).
  int run(const JobOptions&, const std::string& out, bool as_json);
  /// The argument that belongs to --export or --explain step.
  const std::string& subject() const { return subject_; }
  /// Errors: Error(usage) for an argument that belongs to no option.
  void expect_subject() const;

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
