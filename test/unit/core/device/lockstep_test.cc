// In lockstep launches, every queue keeps its order, and launches are merged where the order allows it.
#include "core/device/lockstep.h"

#include <gtest/gtest.h>

#include <string>

namespace hctr::test {
namespace {

std::string launched;  // log of launches; a merged launch lists the names of all its parts

template <char kKind>
void start_merged(Context&, std::span<const LaunchQueue::Launch* const> launches) {
  launched += kKind;
  launched += '(';
  for (const LaunchQueue::Launch* launch : launches) launched += launch->name;
  launched += ") ";
}

template <char kKind>
LaunchQueue::Launch mergeable(const char* name) {
  return {.start_merged = start_merged<kKind>, .name = name, .blocks = 1};
}

LaunchQueue::Launch single(const char* name) {
  return {.start_single = [name](Context&) { launched += std::string(name) + " "; }, .name = name};
}

class LockstepTest : public testing::Test {
 protected:
  LockstepTest() { launched.clear(); }
  Runtime runtime_{Device{}, {}};
  Context ctx_{runtime_, runtime_.compute_stream()};
};

TEST_F(LockstepTest, LaunchesOfOneKindAreMerged) {
  Lockstep tables(ctx_, true);
  for (const char* name : {"1", "2", "3"}) {
    const Context own = tables.next();
    own.queue()->add(mergeable<'a'>(name));
    own.queue()->add(single(name));
    own.queue()->add(mergeable<'b'>(name));
  }
  EXPECT_EQ(launched, "") << "before run()";
  tables.run();
  EXPECT_EQ(launched, "a(123) 1 2 3 b(123) ");
}

TEST_F(LockstepTest, QueuesThatDifferKeepTheirOrderAndMergeAgain) {
  Lockstep tables(ctx_, true);
  const Context first = tables.next(), second = tables.next();
  tables.next();  // this queue stays empty
  first.queue()->add(mergeable<'a'>("1"));
  first.queue()->add(mergeable<'b'>("1"));
  first.queue()->add(mergeable<'c'>("1"));
  second.queue()->add(mergeable<'a'>("2"));
  second.queue()->add(mergeable<'c'>("2"));
  tables.run();
  EXPECT_EQ(launched, "a(12) b(1) c(12) ");
}

TEST_F(LockstepTest, QueuesKnowWhetherOthersRunTheSame) {
  Lockstep tables(ctx_, true);
  EXPECT_FALSE(tables.next().queue()->several());
  EXPECT_TRUE(tables.next(true).queue()->several());
}

TEST_F(LockstepTest, OnTheCpuNothingIsCollected) {
  Lockstep tables(ctx_);
  EXPECT_EQ(tables.next().queue(), nullptr);
  tables.run();
}

/// A late launch is never merged, whether it is the first or the last of its queue. It runs on the stream that the call
/// names.
TEST_F(LockstepTest, LateLaunchesAreStartedApart) {
  Runtime other_runtime(Device{}, {});
  Context other(other_runtime, other_runtime.compute_stream());
  const Tensor result(nullptr, TensorSpec(DType::f32, {0}), Device{});
  for (const bool late_first : {false, true}) {
    launched.clear();
    Lockstep all(ctx_, true);
    for (const char* name : {"1", "2"}) {
      all.next_late({result, DType::f16, {}}).queue()->add(mergeable<'p'>(name));
      all.next().queue()->add(mergeable<'a'>(name));
    }
    EXPECT_EQ(all.late().size(), 2u);
    if (late_first)
      all.run_late(other);
    else
      all.run_first(other);
    EXPECT_EQ(launched, late_first ? "p(12) " : "a(12) ");
    all.run();
    EXPECT_EQ(launched, late_first ? "p(12) a(12) " : "a(12) p(12) ");
    EXPECT_TRUE(all.late().empty());
  }
}

}  // namespace
}  // namespace hctr::test
