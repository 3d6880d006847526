// Several processes of a program that join each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace hctr::test {

/// A TCP port of this machine that is unused now.
int free_port();

/// Seconds of --peer-timeout in tests: more than a busy machine lets a process wait for its turn.
extern const int kPeerTimeout;

/// The program to start as one of the processes.
struct JoinedProcess {
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment = {};
};
/// Starts all at once. Each runs in `folder`, with RANK, WORLD_SIZE and the rest in its environment; the entries of
/// `environment` win.
std::vector<Started> start_joined(const std::vector<JoinedProcess>&, const std::filesystem::path& folder);
/// start_joined(), and waits for them. Once a line of the error stream of the first process contains `after`, `signal`
/// is sent to process `to`; 0: none is. A process that a signal has stopped is killed in the end.
std::vector<Outcome> run_joined(const std::vector<JoinedProcess>&, const std::filesystem::path& folder,
                                const std::string& after = "", int to = 0, int signal = 0);
/// The same program on all.
std::vector<Outcome> run_joined(int processes, const std::string& program, const std::vector<std::string>& arguments,
                                const std::filesystem::path& folder);

}  // namespace hctr::test
