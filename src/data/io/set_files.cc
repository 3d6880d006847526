#include "data/io/set_files.h"

#include <algorithm>

#include "data/io/file_list.h"

namespace hctr {
namespace {

/// The first bytes of a file. Errors: Error(io).
std::string start_of(const fs::path& path) {
  const File file = open_to_read(path, "data file");
  std::string start(4096, '\0');
  start.resize(std::fread(start.data(), 1, start.size(), file.get()));
  return start;
}

bool is_number(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return !line.empty() && std::all_of(line.begin(), line.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<fs::path> files(const fs::path& source, bool list, const Log& log, bool parquet = false) {
  return list ? read_file_list(source, log, parquet) : std::vector<fs::path>{source};
}

}  // namespace

std::vector<fs::path> raw_files(const fs::path& source, const Log& log, bool parquet) {
  const std::string start = start_of(source);
  return files(source, !start.empty() && start.find('\0') == start.npos && is_number(start.substr(0, start.find('\n'))),
               log, parquet);
}

std::vector<fs::path> text_files(const fs::path& source, const Log& log) {
  std::string start = start_of(source);
  if (start.starts_with("\xEF\xBB\xBF")) start.erase(0, 3);
  const size_t newline = start.find('\n');
  return files(source, newline != start.npos && is_number(start.substr(0, newline)), log);
}

bool is_parquet(const fs::path& path) { return start_of(path).starts_with("PAR1"); }

std::vector<fs::path> parquet_files(const fs::path& source, const Log& log) {
  return files(source, !is_parquet(source), log, true);
}

}  // namespace hctr
