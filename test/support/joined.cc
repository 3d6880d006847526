#include "support/joined.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/base/expect.h"
#include "core/base/platform.h"

namespace hctr::test {

const int kPeerTimeout = kSanitized ? 8 : 4;

int free_port() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size), 0);
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(descriptor);
  return ntohs(address.sin_port);
}

std::vector<Started> start_joined(const std::vector<JoinedProcess>& processes, const std::filesystem::path& folder) {
  const std::string port = std::to_string(free_port());
  std::vector<Started> started;
  for (size_t p = 0; p < processes.size(); ++p) {
    std::map<std::string, std::string> environment = processes[p].environment;
    environment.insert({{"RANK", std::to_string(p)},
                        {"WORLD_SIZE", std::to_string(processes.size())},
                        {"MASTER_ADDR", "127.0.0.1"},
                        {"MASTER_PORT", port}});
    started.push_back(
        start_program(processes[p].program, processes[p].arguments, folder, environment, cat("joined-", p)));
  }
  return started;
}

std::vector<Outcome> run_joined(const std::vector<JoinedProcess>& processes, const std::filesystem::path& folder,
                                const std::string& after, int to, int signal) {
  const std::vector<Started> started = start_joined(processes, folder);
  if (signal != 0) {
    wait_for_text(started[0].err, after);
    ::kill(started[static_cast<size_t>(to)].process, signal);
  }
  std::vector<Outcome> outcomes(processes.size());
  for (size_t p = 0; p < processes.size(); ++p)
    if (signal != SIGSTOP || p != static_cast<size_t>(to)) outcomes[p] = finish_program(started[p]);
  if (signal == SIGSTOP) {
    ::kill(started[static_cast<size_t>(to)].process, SIGKILL);
    outcomes[static_cast<size_t>(to)] = finish_program(started[static_cast<size_t>(to)]);
  }
  return outcomes;
}

std::vector<Outcome> run_joined(int processes, const std::string& program, const std::vector<std::string>& arguments,
                                const std::filesystem::path& folder) {
  return run_joined(std::vector<JoinedProcess>(static_cast<size_t>(processes), {program, arguments}), folder);
}

}  // namespace hctr::test
