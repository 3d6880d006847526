// A Kafka topic as a source of followed data. Messages are lines of text and are collected in files.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/arriving_files.h"
#include "stream/topic_reader.h"

namespace hctr {

/// The parts of a source such as "kafka://h1:9092,h2:9092/topic#folder=spool&rows=1000&security.protocol=ssl".
struct TopicSource {
  StreamOptions stream{};
  fs::path folder{};         ///< folder of the files; default: <topic>.kafka
  int64_t rows = 100'000;    ///< maximum rows per file
  double seconds = 2;        ///< maximum time until a file is completed, even with fewer rows
  int64_t keep_files = 100;  ///< number of newest files to keep; a removed file is read from the topic again if needed
};

/// Whether a source names a Kafka topic.
bool is_topic_source(const fs::path& source);
/// Parses "kafka://host:port/topic#options". Errors: Error(config) naming the invalid part.
TopicSource topic_source(const fs::path&);

/// The messages in one file: those of one partition with offsets in [first, end). The file name contains the range, so
/// any host can recreate the file with the same bytes.
struct TopicRange {
  int32_t partition = 0;
  int64_t first = 0, end = 0;
};
/// The file name of a range, such as "clicks-0-000000001000-000000002000.txt".
std::string name_of_range(const std::string& topic, const TopicRange&);
std::optional<TopicRange> range_of_name(const std::string& topic, std::string_view name);

/// Collects the messages of a topic after the `known` files. A message has one or more rows. The data end after one
/// message "_END" per partition. Errors of look(): Error(io); Error(data) if the topic has deleted messages that are in
/// no file.
class ArrivingFromTopic : public ArrivingFiles {
 public:
  ArrivingFromTopic(TopicSource, const std::vector<std::string>& known);
  NewFiles look() override;

 private:
  struct Piece {
    std::string text{};
    TopicRange range{};
    int64_t rows = 0;
    std::chrono::steady_clock::time_point begun{};
  };
  void complete(Piece&, NewFiles&);
  void remove_old();

  TopicSource source_;
  TopicReader reader_;
  std::map<int32_t, Piece> pieces_;
  std::map<int32_t, bool> ended_;
  std::vector<std::string> names_;
};

/// The path of a range's file. Recreates the file from the topic if the folder lacks it. Errors: Error(io); Error(data)
/// if the topic has deleted the messages.
fs::path file_of_range(const TopicSource&, const std::string& name);

}  // namespace hctr
