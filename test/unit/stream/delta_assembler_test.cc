#include "stream/delta_assembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace hctr::test {
namespace {

/// Messages of deltas with one table. Delta i sets the rows of key i and key 0 to the iteration.
class Messages {
 public:
  explicit Messages(uint64_t stream = 1) : stream_(stream) {}

  /// `cut`: number of messages omitted at the end.
  std::vector<std::string> delta(int64_t iteration, int64_t base, size_t cut = 0, const std::string& run = "run") {
    const StreamedAbout about{.run = run, .iteration = iteration, .base = base, .tables = {{.name = "t", .dim = 2}}};
    std::vector<std::string> all;
    std::vector<uint32_t> crcs;
    const auto add = [&](DeltaMessageKind kind, uint32_t count, const std::string& body) {
      all.emplace_back();
      crcs.push_back(write_delta_message({.kind = kind,
                                          .stream = stream_,
                                          .sequence = sequence_++,
                                          .delta = delta_,
                                          .index = static_cast<uint32_t>(all.size() - 1),
                                          .count = count},
                                         body, all.back()));
    };
    add(DeltaMessageKind::begin, 0, begin_body(about));
    for (const int64_t key : {int64_t{0}, iteration}) {
      const std::vector<float> row(2, static_cast<float>(iteration));
      add(DeltaMessageKind::rows, 1, rows_body({}, {&key, 1}, row));
    }
    add(DeltaMessageKind::end, 0, end_body(static_cast<uint32_t>(all.size()) + 1, crc_of_crcs(crcs)));
    ++delta_;
    all.resize(all.size() - cut);
    return all;
  }

 private:
  uint64_t stream_, sequence_ = 0, delta_ = 0;
};

class Receiver {
 public:
  explicit Receiver(int64_t iteration, int64_t held = 1 << 20) : assembler("run", iteration, held) {}

  void take(const std::vector<std::string>& messages) {
    for (const std::string& message : messages) assembler.take(0, offset_++, message);
  }
  /// Applies all complete deltas, and returns their iterations.
  std::vector<int64_t> apply() {
    std::vector<int64_t> applied;
    while (const auto delta = assembler.next()) {
      applied.push_back(delta->about.iteration);
      EXPECT_EQ(delta->tables.at(0).keys, (std::vector<int64_t>{0, delta->about.iteration}));
      assembler.taken();
    }
    return applied;
  }
  DeltaAssembler assembler;

 private:
  int64_t offset_ = 0;
};

using Iterations = std::vector<int64_t>;

TEST(DeltaAssembler, GivesEachDeltaOnceAndInOrderHoweverMessagesCome) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    Messages messages;
    std::vector<std::pair<int32_t, std::string>> all;  // messages with the partitions that carry them
    for (int64_t i = 1; i <= 6; ++i)
      for (const std::string& message : messages.delta(i * 10, i * 10 - 10)) {
        all.emplace_back(static_cast<int32_t>(random() % 3), message);
        if (random() % 3 == 0) all.emplace_back(static_cast<int32_t>(random() % 3), message);
      }
    // Simulates partitions that are read at different speeds. In even rounds, also simulates messages in random order.
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return a.first < b.first; });
    if (round % 2 == 0) std::shuffle(all.begin(), all.end(), random);
    DeltaAssembler assembler("run", 0, 1 << 20);
    Iterations applied;
    std::map<int32_t, int64_t> offsets;
    for (const auto& [partition, message] : all) {
      assembler.take(partition, offsets[partition]++, message);
      while (const auto delta = assembler.next()) {
        applied.push_back(delta->about.iteration);
        assembler.taken();
      }
    }
    EXPECT_EQ(applied, (Iterations{10, 20, 30, 40, 50, 60}));
    EXPECT_EQ(assembler.statistics().doubled, static_cast<int64_t>(all.size()) - 24);
    EXPECT_EQ(assembler.statistics().held, 0);
    EXPECT_EQ(assembler.statistics().missing, 0);
    EXPECT_EQ(assembler.offsets(), offsets);
  }
}

TEST(DeltaAssembler, AfterARestartAtItsOffsetsNothingIsLostOrTwice) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 200; ++round) {
    Messages messages;
    std::vector<std::string> topic[2];
    for (int64_t i = 1; i <= 8; ++i)
      for (const std::string& message : messages.delta(i, i - 1)) topic[random() % 2].push_back(message);
    Iterations applied;
    std::map<int32_t, int64_t> stored;
    int64_t iteration = 0;
    for (int ended = 0; ended < 100 && iteration < 8; ++ended) {
      DeltaAssembler assembler("run", iteration, 1 << 20);
      std::map<int32_t, int64_t> next = stored;
      for (uint64_t reads = random() % 30; reads > 0; --reads) {
        const auto p = static_cast<int32_t>(random() % 2);
        if (next[p] == static_cast<int64_t>(topic[p].size())) continue;
        assembler.take(p, next[p], topic[p][static_cast<size_t>(next[p])]);
        ++next[p];
        while (const auto delta = assembler.next()) {
          stored = assembler.offsets();  // stores the offsets together with the commit
          iteration = delta->about.iteration;
          applied.push_back(iteration);
          assembler.taken();
        }
      }
    }
    ASSERT_EQ(applied, (Iterations{1, 2, 3, 4, 5, 6, 7, 8}));
  }
}

TEST(DeltaAssembler, ADeltaThatIsPublishedAnewReplacesItsFirstAttempt) {
  Messages first(1), second(2);
  Receiver receiver(0);
  receiver.take(first.delta(1, 0));
  receiver.take(first.delta(2, 1, 2));
  EXPECT_EQ(receiver.apply(), Iterations{1});
  receiver.take(second.delta(2, 1));
  receiver.take(second.delta(3, 2));
  EXPECT_EQ(receiver.apply(), (Iterations{2, 3}));
  EXPECT_EQ(receiver.assembler.statistics().given_up, 1);
  EXPECT_EQ(receiver.assembler.statistics().held, 0);
}

TEST(DeltaAssembler, WaitsForALostDeltaUntilAWholeModelReplacesIt) {
  Messages messages;
  Receiver receiver(0);
  receiver.take(messages.delta(1, 0));
  (void)messages.delta(2, 1);  // this delta is lost
  receiver.take(messages.delta(3, 2));
  EXPECT_EQ(receiver.apply(), Iterations{1});
  EXPECT_EQ(receiver.assembler.statistics().missing, 4);
  EXPECT_EQ(receiver.assembler.statistics().held, 1);
  receiver.take(messages.delta(4, -1));
  receiver.take(messages.delta(5, 4));
  EXPECT_EQ(receiver.apply(), (Iterations{4, 5}));
  EXPECT_EQ(receiver.assembler.statistics().held, 0);
}

TEST(DeltaAssembler, GoesOnFromFilesThatCloseAGap) {
  Messages messages;
  Receiver receiver(0);
  (void)messages.delta(1, 0);
  receiver.take(messages.delta(2, 1));
  receiver.take(messages.delta(3, 2));
  EXPECT_EQ(receiver.apply(), Iterations{});
  receiver.assembler.skip_to(2);
  EXPECT_EQ(receiver.apply(), Iterations{3});
}

TEST(DeltaAssembler, SkipsOtherRunsAndWhatIsAppliedAlready) {
  Messages messages;
  Receiver receiver(2);
  receiver.take(messages.delta(1, 0));
  receiver.take(messages.delta(2, 1));
  receiver.take(messages.delta(3, 2, 0, "other"));
  receiver.take(messages.delta(3, 2));
  EXPECT_EQ(receiver.apply(), Iterations{3});
  EXPECT_EQ(receiver.assembler.statistics().given_up, 0);
}

TEST(DeltaAssembler, DamagedMessagesAreNeverPartOfADelta) {
  Messages messages;
  for (size_t at = 0; at < 4; ++at) {
    std::vector<std::string> damaged = messages.delta(1, 0);
    damaged[at].back() = static_cast<char>(damaged[at].back() ^ 1);
    Receiver receiver(0);
    receiver.take(damaged);
    EXPECT_EQ(receiver.apply(), Iterations{});
    EXPECT_EQ(receiver.assembler.statistics().damaged, 1);
  }
}

TEST(DeltaAssembler, HoldsNoMoreThanItsLimitAndTheDeltaThatComes) {
  Messages messages;
  Receiver receiver(0, 1000);
  (void)messages.delta(1, 0);
  for (int64_t i = 2; i < 100; ++i) receiver.take(messages.delta(i, i - 1));
  EXPECT_LT(receiver.assembler.statistics().held, 5);
  receiver.take(messages.delta(100, -1));
  receiver.take(messages.delta(101, 100));
  EXPECT_EQ(receiver.apply(), (Iterations{100, 101}));
}

}  // namespace
}  // namespace hctr::test
