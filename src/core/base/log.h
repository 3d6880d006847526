// The human-readable log: one line per event, written to a sink that the caller chooses.
#pragma once

#include <functional>
#include <mutex>
#include <string_view>

#include "core/base/expect.h"

namespace hctr {

enum class Level { info, warning, error };

/// Thread-safe: lines of several threads do not mix.
class Log {
 public:
  using Sink = std::function<void(Level, std::string_view line)>;

  explicit Log(Sink sink) : sink_(std::move(sink)) {}
  /// Writes to the standard error stream: "line", "warning: line", "error: line".
  static Log to_stderr();
  /// Discards every line.
  static Log silent();

  template <class... Parts>
  void info(const Parts&... parts) const {
    write(Level::info, cat(parts...));
  }
  template <class... Parts>
  void warning(const Parts&... parts) const {
    write(Level::warning, cat(parts...));
  }
  template <class... Parts>
  void error(const Parts&... parts) const {
    write(Level::error, cat(parts...));
  }

  void write(Level, std::string_view line) const;

 private:
  Sink sink_;
};

}  // namespace hctr
