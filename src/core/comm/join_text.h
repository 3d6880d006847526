// Messages that processes exchange to join and to watch each other. A message may come from an attacker, so every field
// is validated.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Upper limit on processes; far above the size of any real job, because every process connects to every other.
inline constexpr int kMostProcesses = 1 << 16;
inline constexpr size_t kMostGreeting = 2048, kMostTable = size_t{1} << 24;

/// Parses an integer. Returns nullopt if `text` has other characters or the value is outside [least, most].
std::optional<int> whole_number(std::string_view text, int least, int most);

/// The first message of a connected process.
struct Greeting {
  int process = 0, processes = 0;  ///< this process's number and the number of processes, as the launcher assigned them
  int port = 0;                    ///< TCP port on which the process listens for others; 0: none
  std::string host, version = {};
};
std::string text_of(const Greeting&);
/// Returns nullopt if the text is not a greeting, a number is out of range, or a name has invalid characters.
std::optional<Greeting> greeting_from(std::string_view text);

/// The address of one process. Process 0 sends the addresses of all processes, as a table, to every process.
struct Whereabout {
  int launched = 0;  ///< the number assigned by the launcher
  int port = 0;
  std::string address, host;
};
std::string text_of(const std::vector<Whereabout>&);
/// Parses the table of joined processes in ascending order, process 0 first. The table must contain `self`, a number
/// assigned by the launcher. Errors: Error(comm) naming the invalid line.
std::vector<Whereabout> table_from(std::string_view text, int self, int processes);

/// The message that carries the secret for later joins. Process 0 sends this message before the table if the user set
/// no secret.
std::string text_of_secret(std::string_view secret);
/// Returns nullopt if the text does not carry a secret of make_job_secret().
std::optional<std::string> secret_from(std::string_view text);

/// Parses the exit code that a peer sends to end this process. The run is incomplete, so the result is always an error
/// code. Invalid numbers become the code of Kind::comm.
int exit_code_from(std::string_view text);

}  // namespace hctr
