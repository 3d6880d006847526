#include "support/mock_kafka.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "stream/kafka_library.h"
#include "support/paths.h"

extern char** environ;

namespace hctr::test {
namespace {

constexpr int kMostWaitMs = 60'000;

std::filesystem::path mock_program() { return bin_dir() / "kafka_mock_cluster"; }

}  // namespace

std::string why_no_mock_kafka() {
  if (!std::filesystem::exists(mock_program())) return "built without librdkafka";
  return why_no_kafka();
}

MockKafka::MockKafka(const std::vector<std::string>& topics, int brokers) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("no pipes");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, to[0], 0);
  posix_spawn_file_actions_adddup2(&files, from[1], 1);
  std::vector<std::string> words = {mock_program().string(), std::to_string(brokers)};
  words.insert(words.end(), topics.begin(), topics.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed = posix_spawn(&process_, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  close(to[0]);
  close(from[1]);
  to_ = to[1];
  from_ = from[0];
  if (failed) throw std::runtime_error("kafka_mock_cluster does not start");
  brokers_ = line();
}

MockKafka::~MockKafka() {
  close(to_);  // the process ends when its input is closed
  close(from_);
  waitpid(process_, nullptr, 0);
}

std::string MockKafka::line() {
  for (;;) {
    if (const size_t end = unread_.find('\n'); end != unread_.npos) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
    char bytes[512];
    const ssize_t count = poll(&ready, 1, kMostWaitMs) == 1 ? read(from_, bytes, sizeof bytes) : 0;
    if (count <= 0) throw std::runtime_error("kafka_mock_cluster does not answer");
    unread_.append(bytes, static_cast<size_t>(count));
  }
}

void MockKafka::command(const std::string& text) {
  const std::string words = text + "\n";
  if (write(to_, words.data(), words.size()) != static_cast<ssize_t>(words.size()))
    throw std::runtime_error("kafka_mock_cluster has ended");
  EXPECT_EQ(line(), "ok") << text;
}

StreamOptions MockKafka::stream(const std::string& topic) const {
  return {.brokers = brokers_,
          .topic = topic,
          .message_bytes = 16 << 10,
          .librdkafka = {
              {"session.timeout.ms", "6000"}, {"reconnect.backoff.ms", "20"}, {"reconnect.backoff.max.ms", "200"}}};
}

}  // namespace hctr::test
