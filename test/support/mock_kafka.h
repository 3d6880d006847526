// A Kafka cluster for tests: librdkafka's mock cluster in its own process (test/kafka/mock_cluster.cc).
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
  /// Sends a command of test/kafka/mock_cluster.cc.
  void command(const std::string&);
  /// Stream options for a topic, with short client timeouts.
  StreamOptions stream(const std::string& topic) const;

 private:
  std::string line();

  int process_ = 0, to_ = -1, from_ = -1;
  std::string brokers_, unread_;
};

/// The reason why the mock cluster is not available; empty if it is.
std::string why_no_mock_kafka();

}  // namespace hctr::test

#define HCTR_SKIP_WITHOUT_KAFKA() \
  if (const std::string why_ = ::hctr::test::why_no_mock_kafka(); !why_.empty()) GTEST_SKIP() << why_
