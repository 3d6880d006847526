// A log for tests: a warning or an error that the test did not expect fails it.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"

namespace hctr::test {

class TestLog {
 public:
  TestLog();
  /// Fails the test when an expected line never came.
  ~TestLog();
  TestLog(const TestLog&) = delete;
  TestLog& operator=(const TestLog&) = delete;

  const Log& log() const { return log_; }
  /// One warning or error that contains `part` is to come, any number of times.
  void expect(std::string part) { expected_.push_back({std::move(part), false}); }
  /// Every line so far, "warning: ..." and "error: ..." marked so.
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
