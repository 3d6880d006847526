// Collects everything that is wrong with a config, so that the user sees all problems at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Errors, warnings and notes, each with the JSON pointer of the value it is about.
class Problems {
 public:
  struct Entry {
    std::string pointer, message;
  };

  void error(std::string pointer, std::string message) { errors_.push_back({std::move(pointer), std::move(message)}); }
  void warn(std::string pointer, std::string message) { warnings_.push_back({std::move(pointer), std::move(message)}); }
  /// A value that has no effect, or an assumption. Never an error, even when strict.
  void note(std::string pointer, std::string message) { notes_.push_back({std::move(pointer), std::move(message)}); }

  const std::vector<Entry>& errors() const { return errors_; }
  const std::vector<Entry>& warnings() const { return warnings_; }
  const std::vector<Entry>& notes() const { return notes_; }
  bool any_error() const { return !errors_.empty(); }

  /// Warnings become errors (--strict).
  void make_strict();
  /// Throws Error(config) with all errors, "config.json: 2 problems\n  /solver/...: ...", if there are any; the first
  /// thousand of more.
  void throw_if_any(std::string_view file_name) const;

 private:
  std::vector<Entry> errors_, warnings_, notes_;
};

/// The candidate whose spelling is closest to `word`, at most `max_edits` insertions, deletions, replacements or swaps
/// away, ignoring case; empty if there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates, int max_edits = 2);

/// "; did you mean \"x\"?", or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, int max_edits = 2);

/// "a, b or c".
std::string one_of(const std::vector<std::string>& choices);

}  // namespace hctr
