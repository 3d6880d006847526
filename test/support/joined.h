// Starts several processes of a program that join by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace hctr::test {

/// A TCP port of this machine that is currently unused.
int free_port();

/// The value of --peer-timeout in tests, in seconds. Even a busy machine delays a process by less than this.
extern const int kPeerTimeout;

/// The program and environment of one process.
struct JoinedProcess {
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment = {};
};
/// Starts all processes without waiting. Each runs in `folder`, with RANK, WORLD_SIZE and the other variables set.
/// Entries of `environment` override these variables.
std::vector<Started> start_joined(const std::vector<JoinedProcess>&, const std::filesystem::path& folder);
/// Calls start_joined() and waits for the processes. If `signal` is not 0, sends `signal` to process `to` when a line
/// of process 0's stderr contains `after`. A stopped process is killed at the end.
std::vector<Outcome> run_joined(const std::vector<JoinedProcess>&, const std::filesystem::path& folder,
                                const std::string& after = "", int to = 0, int signal = 0);
/// Runs the same program in all processes.
std::vector<Outcome> run_joined(int processes, const std::string& program, const std::vector<std::string>& arguments,
                                const std::filesystem::path& folder);

}  // namespace hctr::test
