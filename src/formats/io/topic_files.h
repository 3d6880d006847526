// A topic of Kafka whose lines are collected in files, as an origin of data that are followed.
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

/// "kafka://h1:9092,h2:9092/topic#folder=spool&rows=1000&security.protocol=ssl".
struct TopicSource {
  StreamOptions stream{};
  fs::path folder{};         ///< of the files; default: <topic>.kafka
  int64_t rows = 100'000;    ///< of a file at most
  double seconds = 2;        ///< a file is complete after so long, however few rows it has
  int64_t keep_files = 100;  ///< the newest ones; those before are removed, and are read again where they are needed
};

/// Whether a source names a topic.
bool is_topic_source(const fs::path& source);
/// Errors: Error(config) naming what is wrong.
TopicSource topic_source(const fs::path&);

/// The rows of a file: messages [first, end) of a partition. The name of a file says which, so that it can be made
/// again at any time, on any host, with the same bytes.
struct TopicRange {
  int32_t partition = 0;
  int64_t first = 0, end = 0;
};
/// "clicks-0-000000001000-000000002000.txt".
std::string name_of_range(const std::string& topic, const TopicRange&);
std::optional<TopicRange> range_of_name(const std::string& topic, std::string_view name);

/// The files of a topic after the `known` ones. Each message is a row, or several lines; one "_END" in every partition
/// ends the data. Errors of look(): Error(data) where messages are gone that no file has; Error(io).
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

/// The file of a range: the one in the folder, or made of the topic's messages. Errors: Error(io), Error(data) where
/// they are gone.
fs::path file_of_range(const TopicSource&, const std::string& name);

}  // namespace hctr
