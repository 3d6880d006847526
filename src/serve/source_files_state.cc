#include "serve/source_files_state.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

/// The number of a version folder's name, without leading zeros; 0: not a number.
int64_t number_of(const std::string& name) {
  int64_t number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  return read.ec == std::errc() && read.ptr == name.data() + name.size() && number > 0 && name[0] != '0' ? number : 0;
}

std::string state_of_file(const fs::path& path) {
  std::error_code problem;
  const auto time = fs::last_write_time(path, problem);
  const auto bytes = fs::is_regular_file(path, problem) ? fs::file_size(path, problem) : 0;
  return cat(path.string(), " ", static_cast<long long>(time.time_since_epoch().count()), " ",
             static_cast<unsigned long long>(bytes), "\n");
}

}  // namespace

bool is_model_folder(const fs::path& folder) {
  std::error_code problem;
  if (!fs::is_directory(folder, problem)) return false;
  if (fs::exists(folder / "config.pbtxt", problem)) return true;
  for (const auto& entry : fs::directory_iterator(folder, problem))
    if (number_of(entry.path().filename().string()) > 0 && fs::is_directory(entry.path(), problem)) return true;
  return false;
}

bool is_repository(const fs::path& folder) {
  std::error_code problem;
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    empty = false;
    if (is_model_folder(entry.path())) return true;
  }
  return empty;
}

std::map<int64_t, std::string> versions_in(const fs::path& folder) {
  std::map<int64_t, std::string> versions;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder, problem))
    if (const int64_t number = number_of(entry.path().filename().string());
        number > 0 && fs::is_directory(entry.path(), problem))
      versions[number] = entry.path().string();
  return versions;
}

std::string name_of_model(const std::string& path) {
  const std::string plain = path.substr(0, path.find_last_not_of('/') + 1);
  std::string name = fs::path(plain).filename().string();
  if (const size_t iteration = name.rfind('@'); iteration != name.npos) name.erase(iteration);
  return name;
}

void expect_model_name(const std::string& name, const std::string& path) {
  const bool right = !name.empty() && name != "." && name != ".." &&
                     std::ranges::all_of(name, [](unsigned char c) { return c > ' ' && c != '/' && c != 127; });
  if (!right)
    throw Error(Kind::config,
                cat("the model at '", path, "' cannot be named '", name, "': use NAME=PATH for a name without '/'"));
}

std::string state_of_path(const fs::path& path) {
  std::error_code problem;
  std::set<std::string> states = {state_of_file(path)};
  const fs::path real = fs::canonical(path, problem);
  if (!problem) states.insert(real.string());
  if (fs::is_directory(path, problem)) {
    for (const auto& entry : fs::directory_iterator(path, problem)) states.insert(state_of_file(entry.path()));
  } else if (!fs::exists(path, problem) && fs::is_directory(path.parent_path(), problem)) {  // `path` is a prefix
    for (const auto& entry : fs::directory_iterator(path.parent_path(), problem))
      if (entry.path().filename().string().starts_with(path.filename().string()))
        states.insert(state_of_file(entry.path()));
  }
  std::string all;
  for (const std::string& state : states) all += state;
  return all;
}

std::string state_of_model(const fs::path& path, bool versioned) {
  if (!versioned) return state_of_path(path);
  std::string all = state_of_path(path / "config.pbtxt");
  for (const auto& [number, folder] : versions_in(path)) all += state_of_path(folder);
  return all;
}

}  // namespace hctr::serve
