// Collects all errors, warnings and notes about a config, so that the user sees all problems together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Errors, warnings and notes, each with the JSON pointer of its value.
class Problems {
 public:
  struct Entry {
    std::string pointer, message;
  };

  void error(std::string pointer, std::string message) { errors_.push_back({std::move(pointer), std::move(message)}); }
  void warn(std::string pointer, std::string message) { warnings_.push_back({std::move(pointer), std::move(message)}); }
  /// Adds a note, which says that a value has no effect, or what the program assumes. Notes never become errors, even
  /// with --strict.
  void note(std::string pointer, std::string message) { notes_.push_back({std::move(pointer), std::move(message)}); }

  const std::vector<Entry>& errors() const { return errors_; }
  const std::vector<Entry>& warnings() const { return warnings_; }
  const std::vector<Entry>& notes() const { return notes_; }
  bool any_error() const { return !errors_.empty(); }

  /// Turns warnings into errors (--strict).
  void make_strict();
  /// Throws Error(config) "config.json: 2 problems\n  /solver/...: ..." if there are errors. The text lists at most
  /// 1000 errors.
  void throw_if_any(std::string_view file_name) const;

 private:
  std::vector<Entry> errors_, warnings_, notes_;
};

/// The candidate with the smallest edit distance to `word`, ignoring case; empty if none is within `max_edits` edits.
/// An edit is an insertion, a deletion, a replacement or a swap of neighbors.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates, int max_edits = 2);

/// The text "; did you mean \"x\"?"; empty if no candidate is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, int max_edits = 2);

/// The text "a, b or c".
std::string one_of(const std::vector<std::string>& choices);

}  // namespace hctr
