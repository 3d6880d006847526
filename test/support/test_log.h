// A log for tests. An unexpected warning or error fails the test.
#pragma once

#include <string>
#include <vector>

#include "core/base/log.h"

namespace hctr::test {

class TestLog {
 public:
  TestLog();
  /// Fails the test if an expected line was not logged.
  ~TestLog();
  TestLog(const TestLog&) = delete;
  TestLog& operator=(const TestLog&) = delete;

  const Log& log() const { return log_; }
  /// Expects a warning or error that contains `part`, at least once.
  void expect(std::string part) { expected_.push_back({std::move(part), false}); }
  /// All lines so far. Warnings and errors start with "warning: " and "error: ".
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  struct Expected {
    std::string part;
    bool seen;
  };
  Log log_;
  std::vector<Expected> expected_;
  std::vector<std::string> lines_;
};

}  // namespace hctr::test
