// A Kafka for tests: librdkafka's mock cluster in a process of its own (test/kafka/mock_cluster.cc).
#pragma once

#include <string>
#include <vector>

#include "hctr/delta_stream.h"

namespace hctr::test {

class MockKafka {
 public:
  /// `topics`: "name:partitions".
  explicit MockKafka(const std::vector<std::string>& topics, int brokers = 1);
  ~MockKafka();
  MockKafka(const MockKafka&) = delete;
  MockKafka& operator=(const MockKafka&) = delete;

  const std::string& brokers() const { return brokers_; }
  /// A command as the program knows it.
  void command(const std::string&);
  /// Options with short waits of the client.
  StreamOptions stream(const std::string& topic) const;

 private:
  std::string line();

  int process_ = 0, to_ = -1, from_ = -1;
  std::string brokers_, unread_;
};

/// Why there is no Kafka to test with; empty where there is.
std::string why_no_mock_kafka();

}  // namespace hctr::test

#define HCTR_SKIP_WITHOUT_KAFKA() \
  if (const std::string why_ = ::hctr::test::why_no_mock_kafka(); !why_.empty()) GTEST_SKIP() << why_
