// Texts exchanged by processes to join and to watch each other. They may come from an attacker: each is validated
// completely.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Far more than any job needs; every process connects to every other one.
inline constexpr int kMostProcesses = 1 << 16;
inline constexpr size_t kMostGreeting = 2048, kMostTable = size_t{1} << 24;

/// An integer without other characters; none if it is not between `least` and `most`.
std::optional<int> whole_number(std::string_view text, int least, int most);

/// The first message of a connected process.
struct Greeting {
  int process = 0, processes = 0;  ///< as numbered by the launcher
  int port = 0;                    ///< port on which it listens for others; 0: none
  std::string host, version = {};
};
std::string text_of(const Greeting&);
/// Nothing if the text is not a greeting, a number is out of range, or a name has invalid characters.
std::optional<Greeting> greeting_from(std::string_view text);

/// The address of a process, as sent by process 0 to all.
struct Whereabout {
  int launched = 0;  ///< its number from the launcher
  int port = 0;
  std::string address, host;
};
std::string text_of(const std::vector<Whereabout>&);
/// The processes that have joined, in order: process 0 first. `self`, a number of the launcher, must be among them.
/// Errors: Error(comm) naming the wrong line.
std::vector<Whereabout> table_from(std::string_view text, int self, int processes);

/// The message of process 0 before the table, if no secret was set: the secret for later joins.
std::string text_of_secret(std::string_view secret);
/// Nothing if the text is not a secret of make_job_secret().
std::optional<std::string> secret_from(std::string_view text);

/// The exit code of a process that another one ends: always an error code, whatever the other one sends, because the
/// run is not complete. Invalid numbers become the code of Kind::comm.
int exit_code_from(std::string_view text);

}  // namespace hctr
