// huge_ctr --init: derives a config from a user's table.
#pragma once

#include <string>

#include "prepare/init/init.h"
#include "program/command_line.h"

namespace hctr {

class InitCommand {
 public:
  /// Adds --init and its own options. Must outlive parse().
  explicit InitCommand(CommandLine&);

  bool given() const { return !options_.data.empty(); }
  std::string& data() { return options_.data; }
  /// Writes the config to `out`, or to the standard output if `out` is empty or "-". Prints the decisions on the
  /// standard error stream. `eval`: the evaluation rows; empty: a tenth of the rows is held out. Returns the exit code.
  /// Errors: those of init(); Error(usage) without --label.
  int run(const std::string& eval, const std::string& out);

 private:
  InitOptions options_;
  std::string positive_, number_format_;
};

}  // namespace hctr
