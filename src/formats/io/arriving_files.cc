#include "formats/io/arriving_files.h"

#include <algorithm>
#include <set>

#include "core/base/expect.h"
#include "formats/io/source_files.h"
#include "formats/io/topic_files.h"

namespace hctr {
namespace {

constexpr size_t kMostShown = 100;  // maximum length of a file name in messages

bool is_data_file(const fs::directory_entry& entry) {
  std::error_code none;  // no exception if the file has just been removed
  return is_data_name(entry.path().filename().string()) && entry.is_regular_file(none);
}

class ArrivingInFolder : public ArrivingFiles {
 public:
  ArrivingInFolder(fs::path folder, const std::vector<std::string>& known)
      : folder_(std::move(folder)), known_(known.begin(), known.end()) {}

  NewFiles look() override {
    NewFiles found;
    std::error_code error;
    // check for _END before listing the folder, so that the list contains every file older than _END
    found.end = fs::exists(folder_ / kEndOfFiles, error);
    for (fs::directory_iterator at(folder_, error), none; !error && at != none; at.increment(error))
      if (is_data_file(*at) && !known_.contains(at->path().filename())) found.names.push_back(at->path().filename());
    if (error)
      throw Error(Kind::io, cat("cannot read the followed folder '", folder_.string(), "': ", error.message()));
    std::sort(found.names.begin(), found.names.end());
    known_.insert(found.names.begin(), found.names.end());
    return found;
  }

 private:
  fs::path folder_;
  std::set<std::string> known_;
};

class ArrivingInList : public ArrivingFiles {
 public:
  ArrivingInList(fs::path list, const std::vector<std::string>& known) : list_(std::move(list)), known_(known) {}

  NewFiles look() override {
    const std::string text = read_text(list_, "followed file list");
    if (text.find('\0') != text.npos)
      throw Error(Kind::data,
                  cat("'", list_.string(), "' is a binary file; expected a file list, a text with one path per line"));
    NewFiles found;
    size_t entries = 0;
    int64_t number = 1;
    for (size_t begin = 0, end; !found.end && (end = text.find('\n', begin)) != text.npos; begin = end + 1, ++number) {
      std::string_view line = std::string_view(text).substr(begin, end - begin);
      if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);  // removes a byte order mark
      const char* blanks = " \t\r";
      if (line.find_first_not_of(blanks) == line.npos) continue;
      line.remove_prefix(line.find_first_not_of(blanks));
      line = line.substr(0, line.find_last_not_of(blanks) + 1);
      if (number == 1 && line.find_first_not_of("0123456789") == line.npos) continue;
      if (line == kEndOfFiles)
        found.end = true;
      else if (entries++ >= known_.size())
        found.names.emplace_back(line);
      else if (line != known_[entries - 1])
        throw Error(Kind::data, cat("'", list_.string(), "' line ", number, " now names '", line.substr(0, kMostShown),
                                    "', but earlier the list named '", known_[entries - 1].substr(0, kMostShown),
                                    "', which training has read: lines may only be appended to a followed list"));
    }
    if (entries < known_.size())
      throw Error(Kind::data,
                  cat("'", list_.string(), "' now names ", entries, " files, but earlier the list named ",
                      known_.size(), ", which training has read: lines may only be appended to a followed list"));
    known_.insert(known_.end(), found.names.begin(), found.names.end());
    return found;
  }

 private:
  fs::path list_;
  std::vector<std::string> known_;
};

}  // namespace

std::unique_ptr<ArrivingFiles> arriving_files(const fs::path& source, const std::vector<std::string>& known) {
  if (is_topic_source(source)) return std::make_unique<ArrivingFromTopic>(topic_source(source), known);
  if (fs::is_directory(source)) return std::make_unique<ArrivingInFolder>(source, known);
  if (!fs::exists(source))
    throw Error(Kind::io, cat("there is no '", source.string(),
                              "' to follow: \"source\" must name a folder or a file list, which may be empty at "
                              "first"));
  return std::make_unique<ArrivingInList>(source, known);
}

fs::path path_of_arrived(const fs::path& source, const std::string& name) {
  if (is_topic_source(source)) return file_of_range(topic_source(source), name);
  const fs::path entry = name, beside = fs::is_directory(source) ? source / entry : source.parent_path() / entry;
  std::error_code none;  // an invalid name, such as an overlong one, is treated as missing
  if (!fs::is_directory(source) && fs::exists(entry, none)) return entry;
  if (fs::exists(beside, none)) return beside;
  throw Error(Kind::io, cat("'", source.string(), "' named the file '", name.substr(0, kMostShown),
                            "', which does not exist: a file must not be removed before training has read it"));
}

}  // namespace hctr
