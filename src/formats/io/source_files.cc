#include "formats/io/source_files.h"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include "core/base/expect.h"
#include "formats/io/memory_source.h"

namespace hctr {
namespace {

bool is_partition(const std::string& name) {
  const size_t equals = name.find('=');
  return equals != name.npos && equals > 0;
}

/// Decodes percent escapes: "a%20b" becomes "a b".
std::string decoded(std::string_view text) {
  std::string to;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t code = 0;
    const char *const first = text.data() + i + 1, *const last = first + 2;
    const bool coded = text[i] == '%' && i + 2 < text.size() && std::from_chars(first, last, code, 16).ptr == last;
    to += coded ? static_cast<char>(code) : text[i];
    i += coded ? 2 : 0;
  }
  return to;
}

/// Appends the data files of a folder and its partition folders, unsorted.
void add_files(const fs::path& folder, std::vector<fs::path>& files) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!is_data_name(name)) continue;
    if (!fs::is_directory(at->status()))
      files.push_back(at->path());
    else if (is_partition(name))
      add_files(at->path(), files);
    else
      throw Error(Kind::data,
                  cat("'", folder.string(), "' holds the folder '", name,
                      "'; a data folder may contain only partition folders such as 'day=2020-01-01': name '",
                      at->path().string(), "' as the source, or name the files with a pattern such as '",
                      (folder / "*.csv").string(), "'"));
  }
  if (error) throw Error(Kind::io, cat("cannot read the folder '", folder.string(), "': ", error.message()));
}

/// The file ending without compression suffix: ".csv" for "part.csv.gz".
std::string ending_of(const fs::path& file) {
  const fs::path ending = file.extension();
  return (ending == ".gz" || ending == ".zst" ? file.stem().extension() : ending).string();
}

void expect_one_ending(const fs::path& source, const std::vector<fs::path>& files) {
  for (const fs::path& file : files)
    if (ending_of(file) != ending_of(files[0]))
      throw Error(Kind::data, cat("'", source.string(), "' names '", files[0].string(), "' and '", file.string(),
                                  "', which have different endings: select files with a pattern, such as '",
                                  (files[0].parent_path() / ("*" + ending_of(files[0]))).string(), "'"));
}

/// The files that match a pattern. Errors: Error(io) for an unreadable folder.
std::vector<fs::path> matches(const fs::path& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&globfree)> owner(&found, globfree);
  const auto is_serious = [](const char*, int why) { return why != ENOENT && why != ENOTDIR ? 1 : 0; };
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, is_serious, &found);
  if (result != 0 && result != GLOB_NOMATCH)
    throw Error(Kind::io, cat("cannot read the folders of '", pattern.string(), "'"));
  return {found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0)};
}

}  // namespace

bool is_pattern(const fs::path& source) { return source.string().find_first_of("*?[") != std::string::npos; }

bool is_data_name(const std::string& name) {
  return !name.starts_with(".") && !name.starts_with("_") && !name.ends_with(".part") && !name.ends_with(".tmp") &&
         !name.ends_with(".crc");
}

std::optional<std::vector<fs::path>> files_of_folder(const fs::path& source) {
  std::vector<fs::path> files;
  const std::string name = cat("'", source.string(), "'");
  std::error_code none;
  if (fs::is_directory(source, none)) {
    add_files(source, files);
    if (files.empty())
      throw Error(Kind::io,
                  cat("the folder ", name, " contains no data file; names that start with '.' or '_' are ignored"));
  } else if (!fs::exists(source, none) && is_pattern(source)) {
    for (const fs::path& match : matches(source)) {
      if (!is_data_name(match.filename().string())) continue;
      if (fs::is_directory(match))
        add_files(match, files);
      else
        files.push_back(match);
    }
    if (files.empty())
      throw Error(Kind::io, cat("no file matches ", name,
                                "; names that start with '.' or '_' are ignored, and * does not match '/'"));
  } else {
    return std::nullopt;
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  expect_one_ending(source, files);
  return files;
}

bool source_exists(const fs::path& source) {
  std::error_code none;
  return is_in_memory(source.string()) || fs::exists(source, none) || (is_pattern(source) && !matches(source).empty());
}

std::vector<Partition> partitions_in(const fs::path& file) {
  constexpr std::string_view missing = "__HIVE_DEFAULT_PARTITION__";
  std::vector<Partition> partitions;
  for (const fs::path& folder : file.parent_path()) {
    const std::string part = folder.string();
    if (!is_partition(part)) continue;
    const size_t equals = part.find('=');
    std::string value = decoded(std::string_view(part).substr(equals + 1));
    if (value == missing) value.clear();
    partitions.push_back({decoded(std::string_view(part).substr(0, equals)), std::move(value)});
  }
  return partitions;
}

}  // namespace hctr
