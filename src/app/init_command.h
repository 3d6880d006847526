// huge_ctr --init: from a table of the user's own to a config.
#pragma once

#include <string>

#include "prepare/init/init.h"
#include "program/command_line.h"

namespace hctr {

class InitCommand {
 public:
  /// Adds --init and the options that belong to it alone. Outlives parse().
  explicit InitCommand(CommandLine&);

  bool given() const { return !options_.data.empty(); }
  std::string& data() { return options_.data; }
  /// Writes the config to `out`, or to the standard output if that is empty or "-", and the decisions to the standard
  /// error stream. `eval`: the evaluation rows; empty: a tenth of the rows is held out. Returns the exit code.
  /// Errors: those of init(); Error(usage) without --label.
  int run(const std::string& eval, const std::string& out);

 private:
  InitOptions options_;
  std::string positive_, number_format_;
};

}  // namespace hctr
