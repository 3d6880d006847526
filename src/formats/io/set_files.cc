#include "formats/io/set_files.h"

#include <algorithm>

#include "core/base/expect.h"
#include "formats/io/file_list.h"
#include "formats/io/memory_source.h"
#include "formats/io/source_files.h"

namespace hctr {
namespace {

constexpr size_t kStart = 4096;

/// The first bytes of a file, at most kStart. Errors: Error(io).
std::string start_of(const fs::path& path) {
  const File file = open_to_read(path, "data file");
  std::string start(kStart, '\0');
  start.resize(std::fread(start.data(), 1, start.size(), file.get()));
  return start;
}

bool is_number(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return !line.empty() && std::all_of(line.begin(), line.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool has_names(const fs::path& source, std::string_view start) {
  // `start` is the whole file if it is shorter than kStart. The caller may have removed a byte order mark of 3 bytes.
  return names_files(source, start, start.size() < kStart - 3);
}

std::vector<fs::path> files(const fs::path& source, bool list, const Log& log, bool parquet = false) {
  return list ? read_file_list(source, log, parquet) : std::vector<fs::path>{source};
}

/// Like files_of_folder(), but rejects Parquet files unless `parquet`.
std::optional<std::vector<fs::path>> found_files(const fs::path& source, bool parquet = false) {
  auto found = files_of_folder(source);
  if (found && !parquet && found->front().extension() == ".parquet")
    throw Error(Kind::data, is_parquet_advice(found->front()));
  return found;
}

}  // namespace

std::vector<fs::path> norm_files(const fs::path& source, const Log& log) {
  if (is_in_memory(source.string())) return {source};
  if (auto found = found_files(source)) return std::move(*found);
  return read_file_list(source, log);
}

std::vector<fs::path> raw_files(const fs::path& source, const Log& log, bool parquet) {
  if (is_in_memory(source.string())) return {source};
  if (auto found = found_files(source, parquet)) return std::move(*found);
  const std::string start = start_of(source);
  const bool text = !start.empty() && start.find('\0') == start.npos;
  return files(source, text && (is_number(start.substr(0, start.find('\n'))) || has_names(source, start)), log,
               parquet);
}

std::vector<fs::path> text_files(const fs::path& source, const Log& log) {
  if (is_in_memory(source.string())) return {source};
  if (auto found = found_files(source)) return std::move(*found);
  std::string start = start_of(source);
  if (start.starts_with("\xEF\xBB\xBF")) start.erase(0, 3);
  const size_t newline = start.find('\n');
  return files(source, (newline != start.npos && is_number(start.substr(0, newline))) || has_names(source, start), log);
}

std::vector<std::string> text_inputs(const std::vector<std::string>& inputs, const Log& log) {
  std::vector<std::string> all;
  for (const std::string& input : inputs) {
    if (std::error_code none;
        fs::exists(input, none) ? !fs::is_regular_file(input, none) && !fs::is_directory(input) : !is_pattern(input)) {
      all.push_back(input);
      continue;
    }
    for (const fs::path& file : text_files(input, log)) all.push_back(file.string());
  }
  return all;
}

bool is_parquet(const fs::path& path) { return start_of(path).starts_with("PAR1"); }

std::vector<fs::path> parquet_files(const fs::path& source, const Log& log) {
  if (is_in_memory(source.string())) return {source};
  if (auto found = found_files(source, true)) return std::move(*found);
  return files(source, !is_parquet(source), log, true);
}

}  // namespace hctr
