#include "formats/io/topic_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include "hctr/error.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

TEST(TopicFiles, ASourceNamesBrokersTopicAndOptions) {
  EXPECT_FALSE(is_topic_source("folder/kafka://x"));
  ASSERT_TRUE(is_topic_source("kafka://a:1,b:2/clicks"));
  const TopicSource plain = topic_source("kafka://a:1,b:2/clicks");
  EXPECT_EQ(plain.stream.brokers, "a:1,b:2");
  EXPECT_EQ(plain.stream.topic, "clicks");
  EXPECT_EQ(plain.folder, "clicks.kafka");
  const TopicSource full = topic_source("kafka://a:1/t#folder=/spool&rows=7&seconds=0.5&security.protocol=ssl");
  EXPECT_EQ(full.folder, "/spool");
  EXPECT_EQ(full.rows, 7);
  EXPECT_EQ(full.seconds, 0.5);
  EXPECT_EQ(full.stream.librdkafka.at("security.protocol"), "ssl");
  for (const char* wrong : {"kafka://", "kafka://a:1", "kafka:///t", "kafka://a:1/", "kafka://a:1/t/u",
                            "kafka://a:1/t#rows", "kafka://a:1/t#rows=0", "kafka://a:1/t#seconds=x"})
    message_of(Kind::config, [&] { topic_source(wrong); });
}

TEST(TopicFiles, TheNameOfAFileSaysWhichMessagesItHas) {
  const std::string name = name_of_range("a-1", {.partition = 3, .first = 17, .end = 5'000'000'000'000});
  EXPECT_EQ(name, "a-1-3-000000000017-5000000000000.txt");
  const auto range = range_of_name("a-1", name);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->partition, 3);
  EXPECT_EQ(range->first, 17);
  EXPECT_EQ(range->end, 5'000'000'000'000);
  for (const char* other : {"a-1-3-17.txt", "a-1-3-17-18-19.txt", "a-1-3-17-x.txt", "b-1-3-17-18.txt", "a-1-3-17-18"})
    EXPECT_FALSE(range_of_name("a-1", other)) << other;
}

/// The brokers do not exist, so file_of_range() succeeds only if it does not read the topic.
TEST(TopicFiles, AFileThatAnotherProcessIsReadingFromTheTopicIsAwaited) {
  const TemporaryFolder folder;
  TopicSource source = topic_source("kafka://127.0.0.1:1/t");
  source.folder = folder / "spool";
  fs::create_directories(source.folder);
  const std::string name = name_of_range("t", {.partition = 0, .first = 0, .end = 1});
  const int other = ::open(source.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  std::future<fs::path> found = std::async(std::launch::async, [&] { return file_of_range(source, name); });
  EXPECT_EQ(found.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  write_text(source.folder / name, "1,2\n");
  ::close(other);
  EXPECT_EQ(found.get(), source.folder / name);
}

}  // namespace
}  // namespace hctr::test
