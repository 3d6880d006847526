#include "formats/catalog/bad_records_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

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

File open_to_append(const std::string& path) {
  create_parent_folder(path);
  File file(std::fopen(path.c_str(), "ab"));
  if (!file) throw Error(Kind::io, cat("cannot write \"bad_records_file\" '", path, "': ", std::strerror(errno)));
  return file;
}

}  // namespace

Schema<BadRecordsSection> bad_records_schema() {
  return Schema<BadRecordsSection>("bad_records_file")
      .need("path", &BadRecordsSection::path, "the path of the file to which a line is appended for each bad record")
      .opt("most", &BadRecordsSection::most,
           "maximum number of lines of the file; above it bad records are only counted", at_least(1))
      .short_form("path");
}

BadRecordsFile::BadRecordsFile(const BadRecordsSection& section) : section_(section) {
  open_to_append(section.path);
  const std::string text = read_text(section.path, "\"bad_records_file\"");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines_.insert(text.substr(at, end - at));
    at = end + 1;
  }
}

std::shared_ptr<BadRecordsFile> BadRecordsFile::open(const BadRecordsSection& section) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<BadRecordsFile>> files;
  const std::lock_guard lock(mutex);
  std::erase_if(files, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<BadRecordsFile>& known = files[fs::weakly_canonical(fs::absolute(section.path)).string()];
  std::shared_ptr<BadRecordsFile> file = known.lock();
  if (!file) known = file = std::make_shared<BadRecordsFile>(section);
  return file;
}

void BadRecordsFile::add(std::vector<BadRecord> records, const Log& log) {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (BadRecord& bad : records) {
    if (ended_) return;
    if (static_cast<int64_t>(lines_.size()) >= section_.most) {
      ended_ = true;
      log.warning("\"bad_records_file\" '", section_.path, "' has ", section_.most,
                  " lines, the limit of the file: further bad records are only counted");
      break;
    }
    if (bad.record < 0 && bad.offset >= 0) find_line(bad);
    std::string line = line_of(bad).text();
    if (lines_.insert(line).second) text += line + "\n";
  }
  if (text.empty()) return;
  try {
    const File file = open_to_append(section_.path);
    // Disable buffering, so that a single write() writes all lines. Lines of other processes then cannot come between
    // these lines.
    std::setvbuf(file.get(), nullptr, _IONBF, 0);
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
  counted_.file.clear();  // the data reader reports the error
}

}  // namespace hctr
