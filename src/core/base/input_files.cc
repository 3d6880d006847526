#include "core/base/input_files.h"

#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace hctr {
namespace {

using FileId = std::pair<dev_t, ino_t>;  // all names of a file (links) give the same FileId
using FilesById = std::map<FileId, fs::path>;

std::optional<FileId> id_of_file(const fs::path& path) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return FileId{facts.st_dev, facts.st_ino};
}

FilesById files_by_id(const std::vector<fs::path>& inputs) {
  FilesById files;
  const auto add = [&](const fs::path& file) {
    if (const auto id = id_of_file(file)) files.emplace(*id, file);
  };
  for (const fs::path& input : inputs) {
    if (input.empty()) continue;
    add(input);
    std::error_code none;
    if (!fs::is_directory(input, none)) continue;
    for (fs::recursive_directory_iterator at(input, none), end; !none && at != end; at.increment(none)) add(at->path());
  }
  return files;
}

void expect_not_among(const FilesById& inputs, const fs::path& out, std::string_view named_by, Kind kind) {
  const auto id = id_of_file(out);
  const auto input = id ? inputs.find(*id) : inputs.end();
  if (input == inputs.end()) return;
  const std::string other = out == input->second ? "" : cat(" (as '", input->second.string(), "')");
  throw Error(kind, cat(named_by, " '", out.string(), "' is a file that this command reads", other,
                        ", so it cannot be the output; name another path"));
}

}  // namespace

void expect_no_input(const fs::path& out, std::string_view named_by, const std::vector<fs::path>& inputs, Kind kind) {
  if (!out.empty() && id_of_file(out)) expect_not_among(files_by_id(inputs), out, named_by, kind);
}

void expect_no_input(const fs::path& out, std::string_view named_by,
                     const std::function<std::vector<fs::path>()>& inputs, Kind kind) {
  if (!out.empty() && id_of_file(out)) expect_no_input(out, named_by, inputs(), kind);
}

void expect_no_input_in(const fs::path& folder, std::string_view named_by, const std::vector<fs::path>& inputs,
                        const std::function<bool(const std::string& name)>& is_output, Kind kind) {
  std::optional<FilesById> files;
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; !none && at != end; at.increment(none)) {
    if (!is_output(at->path().filename().string())) continue;
    if (!files) files = files_by_id(inputs);
    expect_not_among(*files, at->path(), named_by, kind);
  }
}

bool is_numbered(std::string_view name, std::string_view start, std::string_view end) {
  if (name.size() <= start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end)) return false;
  const std::string_view digits = name.substr(start.size(), name.size() - start.size() - end.size());
  return digits.find_first_not_of("0123456789") == digits.npos;
}

}  // namespace hctr
