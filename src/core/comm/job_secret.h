// The secret by which processes of a job know each other.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>

#include "core/comm/launcher.h"

namespace hctr {

/// HCTR_JOB_SECRET, or the content of the file that HCTR_JOB_SECRET_FILE names, without blanks and line ends behind it;
/// empty where neither is set. Errors: Error(usage) where both are set, or it is shorter than 16 characters, so that an
/// empty variable does not pass for a secret, or others than the owner may read or write the file; Error(io) where it
/// cannot be read.
std::string find_job_secret(const Environment&);

/// The secret that processes make when they first join, where none was set, so that later joins ask for it. It may lie
/// in memory that a process shares with the one that starts it again: a write that was cut off counts as none.
class AgreedSecret {
 public:
  static constexpr size_t kCharacters = 64;

  std::string text() const;  ///< empty: there is none yet
  /// `text`: of kCharacters.
  void set(std::string_view text);
  /// Of process 0: whether each process has said that it keeps the secret. Before, one that ended too early may lack
  /// it.
  bool known_to_all() const { return known_to_all_; }
  void set_known_to_all() { known_to_all_ = true; }

 private:
  std::array<char, kCharacters> characters_{};
  std::atomic<bool> set_{false}, known_to_all_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);  // of two processes
};
/// Draws one that nobody can guess. Errors: Error(device) with the reason of the system.
std::string make_job_secret();

}  // namespace hctr
