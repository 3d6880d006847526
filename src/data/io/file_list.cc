#include "data/io/file_list.h"

#include <charconv>

#include "base/error.h"

namespace hctr {
namespace {

std::string_view trimmed(std::string_view text) {
  const char* blanks = " \t\r";
  const size_t first = text.find_first_not_of(blanks);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The lines of a text without blanks at their ends; blank lines at the end of the text are dropped.
std::vector<std::string> lines_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t newline = std::min(text.find('\n'), text.size());
    lines.emplace_back(trimmed(text.substr(0, newline)));
    text.remove_prefix(std::min(newline + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

/// Distinguishes a text from a data file by its first bytes, as a data file may be too large to be read whole.
void expect_text(const fs::path& list) {
  const File file = open_to_read(list, "file list");
  char start[4096];
  const size_t count = std::fread(start, 1, sizeof start, file.get());
  if (std::string_view(start, count).find('\0') != std::string_view::npos)
    throw Error(Kind::data, cat("'", list.string(),
                                "' is no file list but a binary file; a list is a text: the number of files, "
                                "then their paths, one a line"));
}

fs::path locate(const fs::path& list, size_t line, const std::string& entry, const Log& log) {
  const fs::path here = entry, in_folder = list.parent_path() / here;
  std::error_code none;  // a name that cannot be, too long for instance, is not there
  const bool is_here = fs::exists(here, none), is_in_folder = here.is_relative() && fs::exists(in_folder, none);
  if (is_here && is_in_folder && !fs::equivalent(here, in_folder, none))
    log.warning("'", list.string(), "' line ", line, ": '", entry,
                "' exists in the working directory and in the folder of the list; the former is read");
  if (is_here) return here;
  if (is_in_folder) return in_folder;
  throw Error(Kind::io, cat("'", list.string(), "' line ", line, ": there is no file '", entry, "'",
                            here.is_relative() ? cat(", neither in the working directory nor in '",
                                                     fs::absolute(list).parent_path().string(), "'")
                                               : ""));
}

}  // namespace

std::vector<fs::path> read_file_list(const fs::path& list, const Log& log, bool parquet) {
  expect_text(list);
  const std::vector<std::string> lines = lines_of(read_text(list, "file list"));
  const std::string name = cat("'", list.string(), "'");
  size_t count = 0;
  const std::string first = lines.empty() ? "" : lines[0];
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), count);
  if (error != std::errc() || end != first.data() + first.size() || count == 0)
    throw Error(Kind::data, cat(name, " line 1: expected the number of files, at least 1, found ",
                                first.empty() ? "nothing" : cat("\"", first.substr(0, 60), "\"")));
  if (lines.size() - 1 < count)
    throw Error(Kind::data, cat(name, " line 1 promises ", count, count == 1 ? " file" : " files", ", but ",
                                lines.size() - 1, " follow"));
  if (lines.size() - 1 > count)
    log.warning(name, " line 1 says ", count, count == 1 ? " file" : " files", "; the entries from line ", count + 2,
                " on are not read");
  std::vector<fs::path> files;
  for (size_t i = 1; i <= count; ++i) {
    if (lines[i].empty())
      throw Error(Kind::data, cat(name, " line ", i + 1, ": expected the path of a data file, found a blank line"));
    if (!parquet && fs::path(lines[i]).extension() == ".parquet")
      throw Error(Kind::data,
                  cat(name, " line ", i + 1, ": '", lines[i], "' is a Parquet file; say \"format\": \"Parquet\""));
    files.push_back(locate(list, i + 1, lines[i], log));
  }
  return files;
}

void write_file_list(const fs::path& list, const std::vector<fs::path>& files, bool relative) {
  std::string text = cat(files.size(), "\n");
  for (const fs::path& file : files) {
    const fs::path near = relative ? file.lexically_relative(list.parent_path()) : file;
    text += (near.empty() || *near.begin() == ".." ? file : near).string() + "\n";
  }
  write_text(list, text);
}

}  // namespace hctr
