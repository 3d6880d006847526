#include "ops/common/fill.h"

#include <gtest/gtest.h>

#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(Fill) {
  row("typical", {{"like", {64, 33}}});
  row("one element", {{"like", {1, 1}}});
  row("vector", {{"like", {1000}}});
  row("no rows", {{"like", {0, 8}}});
  large("large", {{"like", {5000, 1031}}});
  forward([](Rig& t) { ops::fill(t.ctx, -1.5f, t.out("y", t["like"].shape())); });
  expected([](const auto& t) { t.expect("y", std::vector<double>(t["like"].size(), -1.5)); });
}

}  // namespace
}  // namespace hctr::test
