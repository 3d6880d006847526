// Kernels report keys outside the ranges of direct keys.
#include "engine/rows/key_reports.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

DirectKeys reported_keys() {
  DirectKeys keys;
  keys.spans.push_back({.first = 0, .count = 30, .base = 0, .step = 1});
  keys.first = {0};
  keys.size = {30};
  return keys;
}

TEST(KeyReports, AReportIsAnErrorUntilItIsForgotten) {
  const DirectKeys keys = reported_keys();
  const std::string label = "table 'ranges'";
  for (const bool evaluation : {false, true}) {
    KeyReports reports(runtime_of(kCpu), keys, label, setting_words({}));
    reports.check();
    ops::OutOfRangeKey* const host = reports.of(evaluation).host;
    host->key = 70;
    host->slot = 0;
    host->found = 1;
    try {
      reports.check();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Kind::data);
      const std::string message = error.what();
      for (const char* const part : {"table 'ranges'", "key 70", evaluation ? "evaluation data" : "training data"})
        EXPECT_NE(message.find(part), message.npos) << message;
    }
    reports.forget();
    reports.check();
  }
}

TEST(KeyReports, ATableWithAnIndexReportsNothing) {
  const DirectKeys none;
  const std::string label = "table 'index'";
  KeyReports reports(runtime_of(kCpu), none, label, setting_words({}));
  reports.check();
  reports.forget();
}

}  // namespace
}  // namespace hctr::test
