// huge_ctr store: manages embedding tables for inference in memory and files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hctr/surroundings.h"
#include "program/command_line.h"

namespace hctr {

class StoreCommand {
 public:
  /// Adds the command's own options. Must outlive parse().
  explicit StoreCommand(CommandLine&);

  /// `arguments`: the operation, and the config file. Returns the exit code. Errors: Error(usage), and those of Store.
  int run(const std::vector<std::string>& arguments, const Surroundings&);

 private:
  std::string model_, table_;
  std::vector<int64_t> keys_;
  int slot_ = 0;
};

}  // namespace hctr
