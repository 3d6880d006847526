// The secret that authenticates the processes of a job.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>

#include "core/comm/launcher.h"

namespace hctr {

/// The value of HCTR_JOB_SECRET, or the content of the file named by HCTR_JOB_SECRET_FILE, without trailing blanks and
/// line ends. Empty if neither variable is set. Errors: Error(usage) if both are set, if the secret has fewer than 16
/// characters (which rejects an empty variable), or if users other than the owner may read or write the file; Error(io)
/// if the file cannot be read.
std::string find_job_secret(const Environment&);

/// The secret that processes generate at their first join if the user set none. To join again later, a process must
/// know this secret. The object may lie in memory shared with the keeper process that restarts workers. If set() is
/// interrupted, text() is empty.
class AgreedSecret {
 public:
  static constexpr size_t kCharacters = 64;

  std::string text() const;  ///< empty: no secret yet
  /// `text`: kCharacters characters.
  void set(std::string_view text);
  /// Process 0 only: whether every process has acknowledged the secret. Until then, a process that ended early may lack
  /// the secret.
  bool known_to_all() const { return known_to_all_; }
  void set_known_to_all() { known_to_all_ = true; }

 private:
  std::array<char, kCharacters> characters_{};
  std::atomic<bool> set_{false}, known_to_all_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);  // two processes share the flags
};
/// Generates a random secret. Errors: Error(device) with the system's reason.
std::string make_job_secret();

}  // namespace hctr
