#include "formats/io/topic_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr std::string_view kTopicScheme = "kafka://", kEndOfRange = ".txt";
constexpr int64_t kMostPieceBytes = int64_t{64} << 20, kMostBytesOfLook = int64_t{256} << 20, kLookMs = 20;
constexpr double kWaitForRange = 60;  // in seconds

std::string text_of_row(const KafkaMessage& message) {
  std::string text(static_cast<const char*>(message.bytes), static_cast<size_t>(message.size));
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

bool is_end_message(const KafkaMessage& message) {
  return std::string_view(static_cast<const char*>(message.bytes), static_cast<size_t>(message.size)) == kEndOfFiles;
}

template <class T>
T number_of_option(std::string_view name, std::string_view text) {
  T value{};
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || stop != text.data() + text.size() || value <= 0)
    throw Error(Kind::config,
                cat("source \"kafka://...\": \"", name, "\" needs a number above 0, found \"", text, "\""));
  return value;
}

void set_topic_option(TopicSource& source, std::string_view option) {
  const size_t at = option.find('=');
  if (at == 0 || at == option.npos)
    throw Error(Kind::config, cat("source \"kafka://...\": expected name=value after #, found \"", option, "\""));
  const std::string_view name = option.substr(0, at), value = option.substr(at + 1);
  if (name == "folder")
    source.folder = value;
  else if (name == "rows")
    source.rows = number_of_option<int64_t>(name, value);
  else if (name == "seconds")
    source.seconds = number_of_option<double>(name, value);
  else if (name == "keep_files")
    source.keep_files = number_of_option<int64_t>(name, value);
  else
    source.stream.librdkafka[std::string(name)] = value;
}

TopicOffsets offsets_after(const std::string& topic, const std::vector<std::string>& known) {
  TopicOffsets offsets;
  for (const std::string& name : known)
    if (const auto range = range_of_name(topic, name)) {
      int64_t& offset = offsets[{0, range->partition}];
      offset = std::max(offset, range->end);
    }
  return offsets;
}

/// Locks a folder, so that only one thread of all processes uses it. Does nothing on a file system without locks.
class LockedFolder {
 public:
  explicit LockedFolder(const fs::path& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~LockedFolder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;

 private:
  int descriptor_;
};

Error rows_gone(const TopicSource& source, int32_t partition, int64_t wanted, int64_t first) {
  return {Kind::data,
          cat("topic '", source.stream.topic, "', partition ", partition, ": messages ", wanted, " to ", first - 1,
              " are gone, and no stored file contains these messages: set a longer "
              "retention for the topic")};
}

}  // namespace

bool is_topic_source(const fs::path& source) { return source.native().starts_with(kTopicScheme); }

TopicSource topic_source(const fs::path& path) {
  TopicSource source;
  std::string_view text = path.native();
  text.remove_prefix(kTopicScheme.size());
  const size_t options = std::min(text.find('#'), text.size());
  const std::string_view place = text.substr(0, options);
  const size_t slash = place.find('/');
  if (slash == 0 || slash == place.npos || slash + 1 == place.size() || place.find('/', slash + 1) != place.npos)
    throw Error(Kind::config, cat("source \"", path.string(), "\" is not of the form kafka://host:port,.../topic"));
  source.stream.brokers = place.substr(0, slash);
  source.stream.topic = place.substr(slash + 1);
  source.folder = source.stream.topic + ".kafka";
  for (size_t begin = options + 1, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('&', begin), text.size());
    set_topic_option(source, text.substr(begin, end - begin));
  }
  return source;
}

std::string name_of_range(const std::string& topic, const TopicRange& range) {
  const auto padded = [](int64_t number) {
    const std::string digits = cat(number);
    return std::string(digits.size() < 12 ? 12 - digits.size() : 0, '0') + digits;
  };
  return cat(topic, "-", range.partition, "-", padded(range.first), "-", padded(range.end), kEndOfRange);
}

std::optional<TopicRange> range_of_name(const std::string& topic, std::string_view name) {
  TopicRange range;
  if (!name.starts_with(topic) || !name.ends_with(kEndOfRange)) return {};
  name.remove_prefix(topic.size());
  name.remove_suffix(kEndOfRange.size());
  const auto take = [&](auto& number) {
    if (!name.starts_with('-')) return false;
    const auto [stop, problem] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (problem != std::errc()) return false;
    name.remove_prefix(static_cast<size_t>(stop - name.data()));
    return true;
  };
  if (!take(range.partition) || !take(range.first) || !take(range.end) || !name.empty()) return {};
  return range;
}

ArrivingFromTopic::ArrivingFromTopic(TopicSource source, const std::vector<std::string>& known)
    : source_(std::move(source)),
      reader_(source_.stream, {source_.stream.topic}, offsets_after(source_.stream.topic, known)),
      names_(known) {
  create_parent_folder(source_.folder / "x");
}

NewFiles ArrivingFromTopic::look() {
  NewFiles found;
  int64_t bytes = 0;
  while (bytes < kMostBytesOfLook) {
    const KafkaMessage* const message = reader_.read(kLookMs);
    if (!message) break;
    bytes += message->size;
    Piece& piece = pieces_[message->partition];
    if (reader_.missing() > 0)
      throw rows_gone(source_, message->partition, message->offset - reader_.missing(), message->offset);
    if (reader_.repeated() > 0)
      throw Error(Kind::data, cat("topic '", source_.stream.topic, "', partition ", message->partition, ": offset ",
                                  message->offset, " arrived again after ", reader_.repeated(),
                                  " messages after it: the topic was recreated or truncated"));
    if (piece.text.empty()) {
      piece.range = {message->partition, message->offset, message->offset};
      piece.begun = std::chrono::steady_clock::now();
    }
    if (is_end_message(*message)) {
      ended_[message->partition] = true;
      complete(piece, found);
      continue;
    }
    ended_.erase(message->partition);  // a resumed run may find rows after the end marker of an earlier run
    piece.text += text_of_row(*message);
    piece.range.end = message->offset + 1;
    ++piece.rows;
    if (piece.rows >= source_.rows || static_cast<int64_t>(piece.text.size()) >= kMostPieceBytes)
      complete(piece, found);
  }
  for (auto& [partition, piece] : pieces_)
    if (std::chrono::steady_clock::now() - piece.begun >= std::chrono::duration<double>(source_.seconds))
      complete(piece, found);
  const int64_t partitions = reader_.partitions();
  found.end = partitions > 0 && static_cast<int64_t>(ended_.size()) == partitions;
  remove_old();
  return found;
}

void ArrivingFromTopic::complete(Piece& piece, NewFiles& found) {
  if (piece.text.empty()) return;
  const std::string name = name_of_range(source_.stream.topic, piece.range);
  write_text(source_.folder / name, piece.text);
  found.names.push_back(name);
  names_.push_back(name);
  piece = {};
}

void ArrivingFromTopic::remove_old() {
  std::error_code none;
  for (; static_cast<int64_t>(names_.size()) > source_.keep_files; names_.erase(names_.begin()))
    if (range_of_name(source_.stream.topic, names_.front())) fs::remove(source_.folder / names_.front(), none);
}

fs::path file_of_range(const TopicSource& source, const std::string& name) {
  const auto range = range_of_name(source.stream.topic, name);
  if (!range) throw Error(Kind::io, cat("'", name, "' is not a file of topic '", source.stream.topic, "'"));
  const fs::path file = source.folder / name;
  create_parent_folder(file);
  const LockedFolder lock(source.folder);
  std::error_code none;
  if (fs::exists(file, none)) return file;
  const std::unique_ptr<KafkaReader> reader = open_kafka_reader(source.stream, {source.stream.topic});
  const std::string what = cat("reading '", name, "' from '", source.stream.brokers, "' again");
  const KafkaPlace place{0, range->partition, range->first};
  expect_kafka(reader->start(&place, 1), what);
  std::string text;
  const auto end = after_seconds(kWaitForRange);
  for (int64_t next = range->first; next < range->end;) {
    if (ms_until(end) == 0) throw Error(Kind::io, cat(what, ": no answer: ", reader->trouble()));
    KafkaMessage message;
    bool any = false;
    expect_kafka(reader->read(100, message, any), what);
    if (!any) continue;
    if (message.offset > next) throw rows_gone(source, range->partition, next, message.offset);
    next = message.offset + 1;
    text += text_of_row(message);
  }
  write_text(file, text);
  return file;
}

}  // namespace hctr
