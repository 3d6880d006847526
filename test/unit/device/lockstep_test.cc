// Each of several queues keeps its order, and work of one kind is done together where that order lets it.
#include "device/lockstep.h"

#include <gtest/gtest.h>

#include <string>

namespace hctr::test {
namespace {

std::string done;  // what has been run, in its order: of each launch the names of its parts

template <char kKind>
void together(Context&, std::span<const LaunchQueue::Launch* const> launches) {
  done += kKind;
  done += '(';
  for (const LaunchQueue::Launch* launch : launches) done += launch->name;
  done += ") ";
}

template <char kKind>
LaunchQueue::Launch shared(const char* name) {
  return {.together = together<kKind>, .name = name, .blocks = 1};
}

LaunchQueue::Launch alone(const char* name) {
  return {.alone = [name](Context&) { done += std::string(name) + " "; }, .name = name};
}

class LockstepTest : public testing::Test {
 protected:
  LockstepTest() { done.clear(); }
  Runtime runtime_{Device{}, {}};
  Context ctx_{runtime_, runtime_.compute_stream()};
};

TEST_F(LockstepTest, WorkOfOneKindIsDoneTogether) {
  Lockstep tables(ctx_, true);
  for (const char* name : {"1", "2", "3"}) {
    const Context own = tables.next();
    own.queue()->add(shared<'a'>(name));
    own.queue()->add(alone(name));
    own.queue()->add(shared<'b'>(name));
  }
  EXPECT_EQ(done, "") << "before run()";
  tables.run();
  EXPECT_EQ(done, "a(123) 1 2 3 b(123) ");
}

TEST_F(LockstepTest, QueuesThatDifferMeetAgainAndKeepTheirOrder) {
  Lockstep tables(ctx_, true);
  const Context first = tables.next(), second = tables.next();
  tables.next();  // which nothing is given to
  first.queue()->add(shared<'a'>("1"));
  first.queue()->add(shared<'b'>("1"));
  first.queue()->add(shared<'c'>("1"));
  second.queue()->add(shared<'a'>("2"));
  second.queue()->add(shared<'c'>("2"));
  tables.run();
  EXPECT_EQ(done, "a(12) b(1) c(12) ");
}

TEST_F(LockstepTest, WhereWorkIsDoneAtOnceNothingIsTaken) {
  Lockstep tables(ctx_);
  EXPECT_EQ(tables.next().queue(), nullptr);
  tables.run();
}

}  // namespace
}  // namespace hctr::test
