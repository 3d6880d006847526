#include "hctr/store_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "hctr/error.h"
#include "hctr/store.h"
#include "stream/hps_message.h"
#include "stream/kafka_library.h"
#include "stream/topic_reader.h"
#include "support/message_of.h"
#include "support/mock_kafka.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

using Rows = std::map<int64_t, std::vector<float>>;
constexpr int64_t kDim = 4;
constexpr double kLongest = 60;  // upper bound in seconds; waits end as soon as their condition holds

StoreOptions files_in(const std::filesystem::path& folder) {
  return {.levels = {StoreLevelOptions{}, StoreLevelOptions{.kind = StoreLevelOptions::Kind::file, .folder = folder}}};
}

StoreModel model_of(const Rows& rows, const std::string& version = "1") {
  return {.name = "m",
          .version = version,
          .run = "run",
          .iteration = 0,
          .tables = {{.name = "t", .dim = kDim, .rows = [&rows](const StoreRowSink& sink) {
                        for (const auto& [key, row] : rows) sink({}, {&key, 1}, row);
                      }}}};
}

Rows rows_in(const Store& store) {
  Rows rows;
  const StoreView view = store.view("m");
  for (int64_t key = 0; key < 400; ++key) {
    std::vector<float> row(kDim);
    if (view.get(0, {&key, 1}, row.data()) == 0) rows[key] = row;
  }
  return rows;
}

/// Publishes deltas with random changes. `rows` contains the expected rows.
class Trainer {
 public:
  explicit Trainer(uint64_t seed) : random_(seed) {
    for (int64_t key = 0; key < 200; ++key) rows[key] = row();
  }
  /// `dense`: contents of a file that is published with the rows; empty: none.
  void publish(DeltaProducer& producer, bool whole = false, const std::string& dense = "") {
    const Rows before = rows;
    for (int i = 0; i < 60; ++i) {
      const auto key = static_cast<int64_t>(random_() % 400);
      if (random_() % 4 == 0)
        rows.erase(key);
      else
        rows[key] = row();
    }
    std::vector<int64_t> removed;
    for (const auto& [key, values] : before)
      if (!rows.contains(key)) removed.push_back(key);
    producer.begin({.run = "run",
                    .iteration = iteration + 1,
                    .base = whole ? -1 : iteration,
                    .tables = {{.name = "t", .dim = kDim, .rows = static_cast<int64_t>(rows.size())}}});
    ++iteration;
    for (const auto& [key, values] : rows)
      if (const auto at = before.find(key); whole || at == before.end() || at->second != values)
        producer.rows(0, {&key, 1}, values);
    if (!whole) producer.removed(0, removed);
    if (!dense.empty()) producer.file("dense", dense);
    producer.end();
  }

  Rows rows;
  int64_t iteration = 0;

 private:
  std::vector<float> row() {
    std::vector<float> values(kDim);
    for (float& value : values) value = static_cast<float>(random_() % 1000);
    return values;
  }
  std::mt19937_64 random_;
};

TEST(StoreStream, HasTheTrainersRowsHoweverOftenItIsClosedAndOpened) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:3"});
  const TemporaryFolder folder;
  Trainer trainer(1);
  {
    Store store(files_in(folder / "store"));
    store.load(model_of(trainer.rows));
  }
  DeltaProducer producer(kafka.stream("t"));
  std::mt19937_64 random(2);
  for (int round = 0; round < 6; ++round) {
    for (uint64_t i = random() % 4; i > 0; --i) trainer.publish(producer, random() % 8 == 0);
    Store store(files_in(folder / "store"));
    StoreStream stream(store, "m", {.stream = kafka.stream("t")});
    const int64_t before = store.models()[0].iteration;
    if (random() % 2 == 0)
      stream.apply(0.01);  // closes the store before all deltas are applied
    else
      stream.catch_up(kLongest);
    EXPECT_LE(stream.statistics().applied, trainer.iteration - before);
  }
  trainer.publish(producer);
  Store store(files_in(folder / "store"));
  StoreStream stream(store, "m", {.stream = kafka.stream("t")});
  stream.catch_up(kLongest);
  EXPECT_EQ(store.models()[0].iteration, trainer.iteration);
  EXPECT_EQ(rows_in(store), trainer.rows);
  EXPECT_EQ(stream.statistics().stream.behind, 0);
  EXPECT_GE(stream.statistics().age_seconds, 0);
}

/// Sends the messages of a topic to another topic: to random partitions, in random order, a third of them twice.
void disorder(const MockKafka& kafka, const std::string& from, const std::string& to, int32_t partitions) {
  std::mt19937_64 random(9);
  TopicReader reader(kafka.stream(from), {from}, {});
  std::vector<std::string> messages;
  while (!reader.caught_up(kLongest))
    if (const KafkaMessage* const message = reader.read(100)) {
      messages.emplace_back(static_cast<const char*>(message->bytes), static_cast<size_t>(message->size));
      if (random() % 3 == 0) messages.push_back(messages.back());
    }
  std::shuffle(messages.begin(), messages.end(), random);
  const auto writer = open_kafka_writer(kafka.stream(to));
  for (const std::string& message : messages) {
    bool full = false;
    ASSERT_EQ(writer->send(to.c_str(), static_cast<int32_t>(random() % static_cast<uint64_t>(partitions)),
                           message.data(), static_cast<int64_t>(message.size()), full),
              nullptr);
    ASSERT_FALSE(full);
  }
  while (writer->serve(10) > 0) continue;
}

TEST(StoreStream, DoubledAndReorderedMessagesOfATopicChangeNothing) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"from:2", "to:3"});
  Trainer trainer(6);
  Store store(StoreOptions{});
  store.load(model_of(trainer.rows));
  DeltaProducer producer(kafka.stream("from"));
  for (int i = 0; i < 12; ++i) trainer.publish(producer, i == 5);
  disorder(kafka, "from", "to", 3);
  StoreStream stream(store, "m", {.stream = kafka.stream("to")});
  stream.catch_up(kLongest);
  EXPECT_GT(stream.statistics().stream.doubled, 0);
  EXPECT_EQ(stream.statistics().stream.held, 0);
  EXPECT_EQ(store.models()[0].iteration, trainer.iteration);
  EXPECT_EQ(rows_in(store), trainer.rows);
}

/// The mock broker keeps the newest 5 MB of a partition. Like a real broker's retention, it deletes older messages
/// whether they have been read or not.
TEST(StoreStream, MoreThanATopicKeepsIsCompleteIfReadInTimeAndOtherwiseWaitsForAWholeModel) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:1"});
  Trainer trainer(7);
  const Rows first = trainer.rows;
  Store in_time(StoreOptions{}), late(StoreOptions{});
  for (Store* const store : {&in_time, &late}) store->load(model_of(first));
  const std::string dense(700'000, 'd');
  DeltaProducer producer(kafka.stream("t"));
  const auto apply_newest = [&](StoreStream& stream, const Store& store) {
    const auto end = after_seconds(kLongest);
    while (store.models()[0].iteration < trainer.iteration && ms_until(end) > 0) stream.apply(0.05);
    ASSERT_EQ(store.models()[0].iteration, trainer.iteration);
  };
  StoreStream stream(in_time, "m", {.stream = kafka.stream("t")});
  for (int i = 0; i < 12; ++i) {
    trainer.publish(producer, false, dense);
    apply_newest(stream, in_time);
  }
  EXPECT_EQ(stream.statistics().stream.missing, 0);
  EXPECT_EQ(rows_in(in_time), trainer.rows);
  StoreStream behind(late, "m", {.stream = kafka.stream("t")});
  behind.catch_up(kLongest);
  EXPECT_GT(behind.statistics().stream.held, 0) << "deltas that wait for their base";
  EXPECT_EQ(late.models()[0].iteration, 0);
  EXPECT_EQ(rows_in(late), first);
  trainer.publish(producer, true);
  apply_newest(behind, late);
  EXPECT_EQ(rows_in(late), trainer.rows);
}

TEST(StoreStream, AThreadAppliesWhatComesWhileVersionsChange) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:1"});
  Trainer trainer(3);
  Store store(StoreOptions{});
  store.load(model_of(trainer.rows));
  StoreModel second = model_of(trainer.rows, "2");
  store.load(second);
  StoreStream stream(store, "m", {.stream = kafka.stream("t")});
  stream.start();
  DeltaProducer producer(kafka.stream("t"));
  trainer.publish(producer);
  const auto wait = [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto there = [&] {
      for (const StoreModelStatistics& one : store.models())
        if (one.active && one.iteration == trainer.iteration) return true;
      return false;
    };
    while (!there() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(rows_in(store), trainer.rows);
  };
  wait();
  store.activate("m", "2");  // version 2 has applied no delta, so it starts from the first one
  wait();
  trainer.publish(producer);
  wait();
  stream.stop();
  EXPECT_EQ(stream.statistics().error, "");
}

TEST(StoreStream, AnotherModelsDeltaIsAnErrorAndChangesNothing) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:1"});
  Trainer trainer(4);
  Store store(StoreOptions{});
  Rows other = trainer.rows;
  other[399] = std::vector<float>(kDim);
  store.load(model_of(other));
  DeltaProducer producer(kafka.stream("t"));
  trainer.publish(producer);
  StoreStream stream(store, "m", {.stream = kafka.stream("t")});
  EXPECT_NE(message_of(Kind::data, [&] { stream.catch_up(kLongest); }).find("builds on another model"),
            std::string::npos);
  EXPECT_EQ(rows_in(store), other);
}

// A program that opens a store.json gets the rows of the config's stream. A message says that the stream is read only
// once.
TEST(StoreStream, AnOpenedConfigHasTheRowsOfItsStreamAndSaysWhatFollows) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:2"});
  Trainer trainer(5);
  DeltaProducer producer(kafka.stream("t"));
  trainer.publish(producer, true);
  trainer.publish(producer);
  const std::string text = R"({"models": [{"name": "m", "tables": [{"name": "t", "dim": 4}],
    "stream": {"brokers": ")" +
                           kafka.stream("t").brokers + R"(", "topic": "t"}}]})";
  std::string lines;
  const Surroundings around{.log = [&](Level, std::string_view line) { lines += std::string(line) + "\n"; }};
  const Store store = open_store("store.json", text, true, around);
  EXPECT_EQ(rows_in(store), trainer.rows);
  EXPECT_NE(lines.find("the stream of model 'm' is read once"), std::string::npos) << lines;
}

TEST(StoreStream, RowsOfHugeCtrsMessagesAreAppliedOnceAndInOrder) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"hps_et.m.t:2"});
  const TemporaryFolder folder;
  Trainer trainer(5);
  Rows rows = trainer.rows;
  {
    Store store(files_in(folder / "store"));
    store.load(model_of(rows));
  }
  StoreOptions options = files_in(folder / "store");
  const auto writer = open_kafka_writer(kafka.stream(""));
  const auto send = [&](int32_t partition, const std::string& message) {
    bool full = true;
    while (full) {
      ASSERT_EQ(writer->send("hps_et.m.t", partition, message.data(), static_cast<int64_t>(message.size()), full),
                nullptr);
      if (full) writer->serve(10);
    }
  };
  StoreStreamOptions from{.stream = kafka.stream(""), .hps = true};
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) {
      const int64_t key = i % 20;
      rows[key] = std::vector<float>(kDim, static_cast<float>(round * 100 + i));
      send(hps_key_group(key) % 2, write_hps_message({&key, 1}, rows[key], kDim, 8));
    }
    send(0, "HCTR....");  // a heartbeat: a message without rows
    send(0, "else....");
    while (writer->serve(10) > 0) continue;
    Store store(options);
    StoreStream stream(store, "m", from);
    stream.catch_up(kLongest);
    EXPECT_EQ(stream.statistics().rows, 50);
    EXPECT_EQ(stream.statistics().stream.damaged, 1);
    EXPECT_EQ(rows_in(store), rows);
  }
}

}  // namespace
}  // namespace hctr::test
