#include "formats/io/file_list.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/expect.h"
#include "formats/io/source_files.h"

namespace hctr {
namespace {

std::string_view trimmed(std::string_view text) {
  const char* blanks = " \t\r";
  const size_t first = text.find_first_not_of(blanks);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The lines of a text, without surrounding blanks. Trailing blank lines are dropped.
std::vector<std::string> lines_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // removes a byte order mark
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t newline = std::min(text.find('\n'), text.size());
    lines.emplace_back(trimmed(text.substr(0, newline)));
    text.remove_prefix(std::min(newline + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

/// Throws if the file is binary. Looks only at the first bytes, because a data file may be too large to read entirely.
void expect_text(const fs::path& list) {
  const File file = open_to_read(list, "file list");
  char start[4096];
  const size_t count = std::fread(start, 1, sizeof start, file.get());
  if (std::string_view(start, count).find('\0') != std::string_view::npos)
    throw Error(Kind::data, cat("'", list.string(),
                                "' is a binary file; expected a file list, a text with the number of files, then their "
                                "paths, one per line"));
}

/// The path of a list entry: a file, a folder or a pattern. Empty if nothing matches.
std::optional<fs::path> find_entry(const fs::path& list, const std::string& entry) {
  if (entry.empty()) return std::nullopt;
  const fs::path here = entry, in_folder = list.parent_path() / here;
  if (source_exists(here)) return here;
  if (here.is_relative() && source_exists(in_folder)) return in_folder;
  return std::nullopt;
}

fs::path locate(const fs::path& list, size_t line, const std::string& entry, const Log& log) {
  const std::optional<fs::path> found = find_entry(list, entry);
  const fs::path here = entry, in_folder = list.parent_path() / here;
  std::error_code none;  // an invalid name, such as an overlong one, is treated as missing
  if (found == here && here.is_relative() && source_exists(in_folder) && !fs::equivalent(here, in_folder, none) &&
      fs::weakly_canonical(here, none) != fs::weakly_canonical(in_folder, none))
    log.warning("'", list.string(), "' line ", line, ": '", entry,
                "' exists in the working directory and in the folder of the list; the file in the working "
                "directory is used");
  if (found) return *found;
  throw Error(Kind::io, cat("'", list.string(), "' line ", line, ": there is no file '", entry, "'",
                            here.is_relative() ? cat(", neither in the working directory nor in '",
                                                     fs::absolute(list).parent_path().string(), "'")
                                               : ""));
}

/// Whether a line is a number of files, at least 1. Sets `count`.
bool is_count(const std::string& line, size_t& count) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), count);
  return error == std::errc() && end == line.data() + line.size() && count > 0;
}

}  // namespace

std::string is_parquet_advice(const fs::path& file) {
  return cat("'", file.string(), "' is a Parquet file; set \"format\": \"Parquet\"");
}

std::vector<fs::path> read_file_list(const fs::path& list, const Log& log, bool parquet) {
  expect_text(list);
  const std::vector<std::string> lines = lines_of(read_text(list, "file list"));
  const std::string name = cat("'", list.string(), "'");
  size_t count = 0;
  const std::string first = lines.empty() ? "" : lines[0];
  const bool counted = is_count(first, count);
  if (!counted && !find_entry(list, first))
    throw Error(Kind::data,
                cat(name, " line 1: expected the number of files, at least 1, or the path of a file, found ",
                    first.empty() ? "nothing" : cat("\"", first.substr(0, 60), "\"")));
  if (counted && lines.size() - 1 < count)
    throw Error(Kind::data, cat(name, " line 1 promises ", count, count == 1 ? " file" : " files", ", but ",
                                lines.size() - 1, " follow"));
  if (counted && lines.size() - 1 > count)
    log.warning(name, " line 1 says ", count, count == 1 ? " file" : " files", "; the entries from line ", count + 2,
                " on are ignored");
  std::vector<fs::path> files;
  const size_t begin = counted ? 1 : 0, end = counted ? count + 1 : lines.size();
  for (size_t i = begin; i < end; ++i) {
    if (lines[i].empty())
      throw Error(Kind::data, cat(name, " line ", i + 1, ": expected the path of a data file, found a blank line"));
    const auto add = [&](const fs::path& file) {
      if (!parquet && file.extension() == ".parquet")
        throw Error(Kind::data, cat(name, " line ", i + 1, ": ", is_parquet_advice(file)));
      files.push_back(file);
    };
    if (!parquet && fs::path(lines[i]).extension() == ".parquet") add(lines[i]);
    const fs::path path = locate(list, i + 1, lines[i], log);
    if (const auto inside = files_of_folder(path))
      for (const fs::path& file : *inside) add(file);
    else
      add(path);
  }
  return files;
}

bool names_files(const fs::path& list, std::string_view start, bool whole) {
  if (!whole) start = start.substr(0, start.rfind('\n') + 1);
  const std::vector<std::string> lines = lines_of(start);
  return !lines.empty() && std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return !line.empty() && find_entry(list, line).has_value();
  });
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
