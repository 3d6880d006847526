// The secret that authenticates the processes of a job.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>

#include "core/comm/launcher.h"

namespace hctr {

/// The value of HCTR_JOB_SECRET, or the content of the file named by HCTR_JOB_SECRET_FILE, without trailing blanks and
/// line ends; empty if neither is set. Errors: Error(usage) if both are set, if it has fewer than 16 characters (so
/// that an empty variable is not used as a secret), or if users other than the owner may read or write the file;
/// Error(io) if it cannot be read.
std::string find_job_secret(const Environment&);

/// The secret that processes generate at their first join if none was set, and that later joins require. It may be in
/// memory shared by a process and its keeper: an interrupted write counts as no secret.
class AgreedSecret {
 public:
  static constexpr size_t kCharacters = 64;

  std::string text() const;  ///< empty: none yet
  /// `text`: kCharacters characters.
  void set(std::string_view text);
  /// Process 0 only: whether each process has acknowledged the secret. Before, a process that ended early may lack it.
  bool known_to_all() const { return known_to_all_; }
  void set_known_to_all() { known_to_all_ = true; }

 private:
  std::array<char, kCharacters> characters_{};
  std::atomic<bool> set_{false}, known_to_all_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);  // shared by two processes
};
/// Generates a random secret. Errors: Error(device) with the system's reason.
std::string make_job_secret();

}  // namespace hctr
