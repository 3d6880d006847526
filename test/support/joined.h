// Several processes of a program that join each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace hctr::test {

/// A currently unused TCP port of this machine.
int free_port();

/// Seconds of --peer-timeout in tests: longer than a busy machine keeps a process from running.
extern const int kPeerTimeout;

/// The program and environment of one of the processes.
struct JoinedProcess {
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment = {};
};
/// Starts all at once. Each runs in `folder`, with RANK, WORLD_SIZE and the other variables set; entries of
/// `environment` override them.
std::vector<Started> start_joined(const std::vector<JoinedProcess>&, const std::filesystem::path& folder);
/// start_joined(), then waits for the processes. Once a line of the first process's error stream contains `after`,
/// sends `signal` to process `to`; 0: sends none. A stopped process is killed in the end.
std::vector<Outcome> run_joined(const std::vector<JoinedProcess>&, const std::filesystem::path& folder,
                                const std::string& after = "", int to = 0, int signal = 0);
/// The same program in all processes.
std::vector<Outcome> run_joined(int processes, const std::string& program, const std::vector<std::string>& arguments,
                                const std::filesystem::path& folder);

}  // namespace hctr::test
