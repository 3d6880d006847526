// The texts by which processes join and watch each other. They may come from anybody: each is checked whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Far more than any job has; each process is connected with each.
inline constexpr int kMostProcesses = 1 << 16;
inline constexpr size_t kMostGreeting = 2048, kMostTable = size_t{1} << 24;

/// An integer and nothing else; nothing where it is not between `least` and `most`.
std::optional<int> whole_number(std::string_view text, int least, int most);

/// What a process says once it has connected.
struct Greeting {
  int process = 0, processes = 0;  ///< as the launcher has numbered them
  int port = 0;                    ///< where it listens for others; 0: nowhere
  std::string host, version = {};
};
std::string text_of(const Greeting&);
/// Nothing where the text is no greeting, a number is out of range, or a name has characters that no name has.
std::optional<Greeting> greeting_from(std::string_view text);

/// Where a process is, as process 0 tells all.
struct Whereabout {
  int launched = 0;  ///< the number that the launcher gave
  int port = 0;
  std::string address, host;
};
std::string text_of(const std::vector<Whereabout>&);
/// The processes that have joined, in their order: process 0 first, and `self`, a number of the launcher, among them.
/// Errors: Error(comm) naming the line that is wrong.
std::vector<Whereabout> table_from(std::string_view text, int self, int processes);

/// What process 0 says before the table, where no secret was set: the one that later joins ask for.
std::string text_of_secret(std::string_view secret);
/// Nothing where the text has no secret as make_job_secret() draws them.
std::optional<std::string> secret_from(std::string_view text);

/// The exit code of a process that another one ends: that of an error, whatever the other one says, since the run is
/// not over. A number that is none becomes that of Kind::comm.
int exit_code_from(std::string_view text);

}  // namespace hctr
