// The human-readable log: one line per event, written to a sink that the caller chooses.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/base/expect.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Thread-safe: lines of several threads do not interleave. Copies share one sink.
class Log {
 public:
  using Sink = LogSink;

  /// A null sink discards every line.
  explicit Log(Sink sink) : output_(std::make_shared<Output>(std::move(sink))) {}
  /// Discards every line.
  static Log silent() { return Log(nullptr); }

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
  struct Output {
    explicit Output(Sink to) : sink(std::move(to)) {}
    std::mutex mutex;
    Sink sink;
  };
  std::shared_ptr<Output> output_;
};

}  // namespace hctr
