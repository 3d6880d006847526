#include "formats/catalog/bad_records_file.h"

#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "config/json.h"
#include "core/base/expect.h"
#include "core/base/files.h"

namespace hctr {
namespace {

Json line_of(const BadRecord& bad) {
  Json line(Json::Object{{"file", bad.file}});
  if (bad.record > 0) line.set("record", bad.record);
  if (bad.offset >= 0) line.set("offset", bad.offset);
  line.set("cause", bad.cause);
  return line;
}

/// Opens the file to read it and to append to it.
File open_to_append(const std::string& path) {
  create_parent_folder(path);
  File file(std::fopen(path.c_str(), "a+be"));
  if (!file) throw Error(Kind::io, cat("cannot write \"bad_records_file\" '", path, "': ", std::strerror(errno)));
  return file;
}

/// Waits until no other reader or process writes to the file. The lock ends when the file is closed. On a file system
/// without locks, a line may be written twice.
void lock_to_append(std::FILE* file) {
  while (::flock(::fileno(file), LOCK_EX) != 0 && errno == EINTR) {
  }
}

}  // namespace

Schema<BadRecordsSection> bad_records_schema() {
  return Schema<BadRecordsSection>("bad_records_file")
      .need("path", &BadRecordsSection::path, "the path of the file to which a line is appended for each bad record")
      .opt("most", &BadRecordsSection::most,
           "maximum number of lines of the file; above it bad records are only counted", at_least(1))
      .short_form("path");
}

BadRecordsFile::BadRecordsFile(const BadRecordsSection& section) : section_(section) { open_to_append(section.path); }

void BadRecordsFile::read_new_lines(std::FILE* file) {
  std::string text;
  std::vector<char> piece(256 << 10);
  std::fseek(file, known_bytes_, SEEK_SET);
  while (const size_t got = std::fread(piece.data(), 1, piece.size(), file)) text.append(piece.data(), got);
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != text.npos; at = end + 1) lines_.insert(text.substr(at, end - at));
  known_bytes_ += static_cast<long>(at);
  std::fseek(file, 0, SEEK_END);
}

void BadRecordsFile::add(std::vector<BadRecord> records, const Log& log) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  std::vector<std::string> lines;
  for (BadRecord& bad : records) {
    if (bad.record < 0 && bad.offset >= 0) find_line(bad);
    if (std::string line = line_of(bad).text(); !lines_.contains(line)) lines.push_back(std::move(line));
  }
  if (lines.empty()) return;
  try {
    const File file = open_to_append(section_.path);
    // Disable buffering, so that a single write() writes all lines.
    std::setvbuf(file.get(), nullptr, _IONBF, 0);
    lock_to_append(file.get());
    read_new_lines(file.get());
    std::string text;
    for (const std::string& line : lines) {
      if (lines_.contains(line)) continue;
      if (static_cast<int64_t>(lines_.size()) >= section_.most) {
        ended_ = true;
        log.warning("\"bad_records_file\" '", section_.path, "' has ", section_.most,
                    " lines, the limit of the file: further bad records are only counted");
        break;
      }
      lines_.insert(line);
      text += line + "\n";
    }
    if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size())
      throw Error(Kind::io, cat("cannot write \"bad_records_file\" '", section_.path, "': ", std::strerror(errno)));
  } catch (const Error& error) {
    ended_ = true;
    log.warning(error.what(), "; bad records are only counted");
  }
}

void BadRecordsFile::find_line(BadRecord& bad) try {
  if (!fs::is_regular_file(bad.file)) return;  // a pipe cannot be read a second time
  if (counted_.file != bad.file || counted_.offset > bad.offset) counted_ = {bad.file, open_stream(bad.file), 0, 0};
  std::vector<std::byte> piece(256 << 10);
  while (counted_.offset < bad.offset) {
    const auto wanted = static_cast<size_t>(bad.offset - counted_.offset);
    const size_t got = counted_.stream->read(piece.data(), std::min(piece.size(), wanted));
    if (got == 0) return counted_.file.clear();
    counted_.lines += std::count(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(got), std::byte{'\n'});
    counted_.offset += static_cast<int64_t>(got);
  }
  bad.record = counted_.lines + 1;
} catch (const Error&) {
  counted_.file.clear();  // ignore the error: the data reader reports it
}

}  // namespace hctr
