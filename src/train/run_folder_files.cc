#include "train/run_folder_files.h"

#include <algorithm>
#include <ctime>
#include <fstream>

#include "core/base/expect.h"

namespace hctr {

fs::path new_run_folder(const fs::path& config) {
  char time[32];
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
  const std::string base = cat("runs/", config == "-" ? "stdin" : config.stem().string(), "-", time);
  std::string name = base;
  std::error_code error;
  fs::create_directories("runs", error);
  for (int n = 2; !error && !fs::create_directory(name, error) && !error; ++n) name = cat(base, "-", n);
  if (error) throw Error(Kind::io, cat("cannot create the run folder '", name, "': ", error.message()));
  return name;
}

void remove_dead_parts(const fs::path& folder, const Log& log) {
  if (const int removed = remove_parts_of_dead_processes(folder / ""); removed > 0)
    log.info("Removed ", removed, removed == 1 ? " file '" : " files '", (folder / "*.part").string(),
             "' of runs that were killed while writing.");
}

bool ends_a_line(const fs::path& text, int64_t end) {
  std::ifstream in(text, std::ios::binary);
  char last = '\n';
  if (end > 0) in.seekg(end - 1).get(last);
  return !in || last == '\n';
}

void keep_foreign(const fs::path& file, const Log& log) {
  fs::path to;
  for (int n = 1; to.empty() || fs::exists(to); ++n) to = cat(file.string(), ".", n);
  std::error_code error;
  fs::rename(file, to, error);
  if (error)
    throw Error(Kind::io, cat("'", file.string(), "' belongs to another run, and cannot be renamed to '", to.string(),
                              "': ", error.message()));
  log.warning("'", file.string(), "' is damaged or belongs to another run: the file was renamed to '", to.string(),
              "', and a new file was created; reports will lack the earlier content");
}

void move_away(const fs::path& path, const std::vector<fs::path>& inputs, const Log& log) {
  const fs::path folder = (path / "").lexically_normal().parent_path();  // `path` without a trailing slash
  fs::path to;
  for (int n = 1; to.empty() || fs::exists(to); ++n) to = cat(folder.string(), ".", n);
  const fs::path whole = fs::weakly_canonical(folder);
  for (const fs::path& input : inputs) {
    const fs::path file = fs::weakly_canonical(input);
    if (const auto [end, rest] = std::mismatch(whole.begin(), whole.end(), file.begin(), file.end());
        end == whole.end())
      throw Error(Kind::config, cat("'", input.string(), "' is in the run folder '", folder.string(),
                                    "', which contains an earlier run and would be moved to '", to.string(),
                                    "': name another --run-dir"));
  }
  std::error_code error;
  fs::rename(folder, to, error);
  if (error)
    throw Error(Kind::io, cat("cannot move the run folder '", folder.string(), "' of an earlier run to '", to.string(),
                              "': ", error.message(), "; name another --run-dir"));
  log.info("The run folder '", folder.string(), "' contained an earlier run, which was moved to '", to.string(), "'.");
}

bool is_file_of_run(const std::string& name) {
  return name.starts_with("final_") || name == kAbout || name == "config.json" || name == kSummary ||
         name == "plan.json" || name == "profile.json";
}

}  // namespace hctr
