#include "support/test_log.h"

#include <gtest/gtest.h>

namespace hctr::test {

TestLog::TestLog()
    : log_([this](Level level, std::string_view line) {
        const char* prefix = level == Level::warning ? "warning: " : level == Level::error ? "error: " : "";
        lines_.push_back(prefix + std::string(line));
        if (level == Level::info) return;
        bool known = false;
        for (Expected& expected : expected_)
          if (line.find(expected.part) != line.npos) known = expected.seen = true;
        if (!known) ADD_FAILURE() << "unexpected in the log: " << lines_.back();
      }) {}

TestLog::~TestLog() {
  for (const Expected& expected : expected_) EXPECT_TRUE(expected.seen) << "expected in the log: " << expected.part;
}

}  // namespace hctr::test
