#include "hctr/delta_stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "hctr/error.h"
#include "support/message_of.h"
#include "support/mock_kafka.h"

namespace hctr::test {
namespace {

constexpr double kSeconds = 60;  // upper bound in seconds; waits end as soon as their condition holds

void publish(DeltaProducer& producer, int64_t iteration, int64_t base, int64_t rows = 3000) {
  producer.begin({.run = "run", .iteration = iteration, .base = base, .tables = {{.name = "t", .dim = 4}}});
  std::vector<int64_t> keys;
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    keys.push_back(i);
    values.insert(values.end(), 4, static_cast<float>(iteration * 10000 + i));
  }
  producer.rows(0, keys, values);
  const int64_t gone = iteration;
  producer.removed(0, {&gone, 1});
  producer.file("_dense.model", std::string(50000, static_cast<char>('a' + iteration)));
  producer.end();
}

void expect_delta(const StreamedDelta* delta, int64_t iteration) {
  ASSERT_TRUE(delta) << iteration;
  EXPECT_EQ(delta->about.iteration, iteration);
  const StreamedDelta::Rows& rows = delta->tables.at(0);
  ASSERT_EQ(rows.keys.size(), 3000u);
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    ASSERT_EQ(rows.keys[i], static_cast<int64_t>(i));
    ASSERT_EQ(rows.rows[4 * i + 3], static_cast<float>(iteration * 10000 + static_cast<int64_t>(i)));
  }
  EXPECT_EQ(rows.removed, std::vector<int64_t>{iteration});
  EXPECT_EQ(delta->files.at(0).second, std::string(50000, static_cast<char>('a' + iteration)));
}

TEST(DeltaStream, DeltasComeWholeThroughABrokerThatFailsAndIsAway) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:3"});
  DeltaProducer producer(kafka.stream("t"));
  publish(producer, 1, 0);
  kafka.command("fail_produce 3");
  publish(producer, 2, 1);
  DeltaSource source(kafka.stream("t"), "", "run", 0);
  kafka.command("fail_fetch 2");
  for (int64_t i = 1; i <= 2; ++i) {
    expect_delta(source.next(kSeconds).get(), i);
    source.taken();
  }
  kafka.command("down 1");
  std::thread up([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kafka.command("up 1");
  });
  publish(producer, 3, 2);
  up.join();
  expect_delta(source.next(kSeconds).get(), 3);
  source.taken();
  EXPECT_EQ(source.next(0), nullptr);
  EXPECT_EQ(source.statistics().deltas, 3);
  EXPECT_EQ(source.statistics().missing, 0);
}

TEST(DeltaStream, GoesOnFromItsPosition) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:2"});
  DeltaProducer producer(kafka.stream("t"));
  std::string position;
  for (int64_t i = 1; i <= 4; ++i) publish(producer, i, i - 1);
  for (int64_t i = 1; i <= 4; ++i) {
    StreamOptions options = kafka.stream("t");
    options.group = "servers";
    DeltaSource source(options, position, "run", i - 1);
    expect_delta(source.next(kSeconds).get(), i);
    position = source.position();
    // The source does not read messages of earlier deltas again.
    EXPECT_EQ(source.statistics().doubled, 0);
    source.taken();
    source.stored();
  }
  DeltaSource source(kafka.stream("t"), position, "run", 4);
  EXPECT_TRUE(source.caught_up(kSeconds));
  EXPECT_NE(message_of(Kind::data, [&] { DeltaSource(kafka.stream("t"), "[]", "run", 4); }).find("not a position"),
            std::string::npos);
}

TEST(DeltaStream, AProducerWaitsForAMissingBrokerNoLongerThanItIsTold) {
  HCTR_SKIP_WITHOUT_KAFKA();
  StreamOptions options{.brokers = "127.0.0.1:1", .topic = "t"};
  DeltaProducer producer(options);
  producer.wait_at_most(0.1);
  EXPECT_NE(message_of(Kind::io, [&] { publish(producer, 1, 0); }).find("topic 't' at '127.0.0.1:1'"),
            std::string::npos);
  DeltaSource source(options, "", "run", 0);
  EXPECT_EQ(source.next(0.05), nullptr);
  EXPECT_FALSE(source.statistics().trouble.empty());
}

TEST(DeltaStream, ADeltaGivenUpIsNeverSeenAndItsNextAttemptIs) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:1"});
  DeltaProducer producer(kafka.stream("t"));
  publish(producer, 1, 0);
  producer.begin({.run = "run", .iteration = 2, .base = 1, .tables = {{.name = "t", .dim = 4}}});
  const std::vector<int64_t> keys = {1};
  const std::vector<float> rows(4, 1e9f);
  producer.rows(0, keys, rows);
  kafka.command("down 1");
  producer.wait_at_most(0.2);
  message_of(Kind::io, [&] { producer.end(); });
  kafka.command("up 1");
  producer.wait_at_most(kSeconds);
  publish(producer, 2, 1);
  DeltaSource source(kafka.stream("t"), "", "run", 0);
  for (int64_t i = 1; i <= 2; ++i) {
    expect_delta(source.next(kSeconds).get(), i);
    source.taken();
  }
}

TEST(DeltaStream, WhatDoesNotFitIsAnError) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:1"});
  DeltaProducer producer(kafka.stream("t"));
  const std::vector<int64_t> keys = {1};
  const std::vector<float> rows = {1, 2};
  message_of(Kind::usage, [&] { producer.rows(0, keys, rows); });
  message_of(Kind::usage, [&] { producer.end(); });
  producer.begin({.iteration = 1, .tables = {{.name = "t", .dim = 3}}});
  EXPECT_NE(message_of(Kind::usage, [&] { producer.rows(0, keys, rows); }).find("expected 3 for each key"),
            std::string::npos);
  message_of(Kind::usage, [&] { producer.rows(1, keys, rows); });
  const std::vector<float> odd = {1, 2, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_NE(message_of(Kind::data, [&] { producer.rows(0, keys, odd); }).find("key 1"), std::string::npos);
  StreamOptions options = kafka.stream("t");
  options.librdkafka["no.such.setting"] = "1";
  EXPECT_NE(message_of(Kind::config, [&] { DeltaProducer{options}; }).find("no.such.setting"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
