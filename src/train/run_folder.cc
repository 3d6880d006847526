#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/input_files.h"
#include "config/config_file.h"
#include "train/run_about.h"

namespace hctr {
namespace {

constexpr const char *kMetrics = "metrics.jsonl", *kAbout = "run.json";

/// Creates a folder under runs/ that no other run has.
fs::path new_folder(const fs::path& config) {
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

/// A descriptor of `metrics` that holds its lock. A run holds it as long as it lives, however it ends.
int open_locked(const fs::path& metrics) {
  std::error_code error;
  if (fs::exists(metrics, error) && !fs::is_regular_file(metrics, error))
    throw Error(Kind::io, cat("cannot write '", metrics.string(), "': it is no file, and lines are cut from it when a ",
                              "run goes on; give another --run-dir"));
  const int file = ::open(metrics.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) throw Error(Kind::io, cat("cannot write '", metrics.string(), "': ", std::strerror(errno)));
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return file;  // some file systems have no locks
  ::close(file);
  throw Error(Kind::io, cat("the run folder '", metrics.parent_path().string(),
                            "' belongs to a run that has not ended: give another --run-dir"));
}

/// Removes what dead processes have left of the folder's own files.
void remove_parts(const fs::path& folder, const Log& log) {
  if (const int removed = remove_parts_of_dead_processes(folder / ""); removed > 0)
    log.info("Removed ", removed, removed == 1 ? " file '" : " files '", (folder / "*.part").string(),
             "' of runs that were killed while they wrote.");
}

/// The id of the run that a run.json says; empty where it says none, or is none.
std::string run_in_about(const fs::path& about) try {
  if (!fs::exists(about)) return {};
  const Json json = Json::read_file(about);
  const Json* run = json.find("run");
  return run && run->string() ? *run->string() : "";
} catch (const Error&) {
  return {};
}

/// Whether byte `end` of a text begins a line, or the text is shorter.
bool ends_a_line(const fs::path& text, int64_t end) {
  std::ifstream in(text, std::ios::binary);
  char last = '\n';
  if (end > 0) in.seekg(end - 1).get(last);
  return !in || last == '\n';
}

/// Renames a file that this run cannot go on with.
void keep_foreign(const fs::path& file, const Log& log) {
  fs::path to;
  for (int n = 1; to.empty() || fs::exists(to); ++n) to = cat(file.string(), ".", n);
  std::error_code error;
  fs::rename(file, to, error);
  if (error)
    throw Error(Kind::io, cat("'", file.string(), "' is not of this run, and cannot be renamed to '", to.string(),
                              "': ", error.message()));
  log.warning("'", file.string(), "' is damaged or not of this run: it is kept as '", to.string(),
              "', and a new one begins; its earlier content is not in reports");
}

/// Renames a folder that holds an earlier run.
void move_away(const fs::path& path, const std::vector<fs::path>& inputs, const Log& log) {
  const fs::path folder = (path / "").lexically_normal().parent_path();  // without a slash at the end
  fs::path to;
  for (int n = 1; to.empty() || fs::exists(to); ++n) to = cat(folder.string(), ".", n);
  const fs::path whole = fs::weakly_canonical(folder);
  for (const fs::path& input : inputs) {
    const fs::path file = fs::weakly_canonical(input);
    if (const auto [end, rest] = std::mismatch(whole.begin(), whole.end(), file.begin(), file.end());
        end == whole.end())
      throw Error(Kind::config, cat("'", input.string(), "' lies in the run folder '", folder.string(),
                                    "', which holds an earlier run and would be moved to '", to.string(),
                                    "': give another --run-dir"));
  }
  std::error_code error;
  fs::rename(folder, to, error);
  if (error)
    throw Error(Kind::io, cat("cannot move the run folder '", folder.string(), "' of an earlier run to '", to.string(),
                              "': ", error.message(), "; give another --run-dir"));
  log.info("The run folder '", folder.string(), "' held an earlier run: it is moved to '", to.string(), "'.");
}

/// Whether a run writes a file of this name into its folder.
bool is_file_of_run(const std::string& name) {
  return name.starts_with("final_") || name == kAbout || name == "config.json" || name == "summary.json" ||
         name == "plan.json" || name == "profile.json";
}

std::string new_run_id() {
  std::random_device source;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%08x%08x", source(), source());
  return digits;
}

Json numbers(const std::map<std::string, double>& values) {
  Json object(Json::Object{});
  for (const auto& [name, value] : values) object.set(name, value);
  return object;
}

Json counts(const std::map<std::string, std::map<std::string, int64_t>>& of_tables) {
  Json tables(Json::Object{});
  for (const auto& [name, values] : of_tables) {
    Json table(Json::Object{});
    for (const auto& [what, count] : values) table.set(what, count);
    tables.set(name, std::move(table));
  }
  return tables;
}

}  // namespace

RunFolder::RunFolder(const fs::path& wanted, const fs::path& config, const std::vector<fs::path>& inputs,
                     const Log& log)
    : path_(wanted.empty() ? new_folder(config) : wanted), log_(log), run_(new_run_id()) {
  if (fs::exists(path_ / kMetrics)) {
    ::close(open_locked(path_ / kMetrics));
    move_away(path_, inputs, log);
  } else {
    expect_no_input_in(path_, "--run-dir", inputs, is_file_of_run);
  }
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw Error(Kind::io, cat("cannot create the run folder '", path_.string(), "': ", error.message()));
  metrics_ = open_locked(path_ / kMetrics);
  remove_parts(path_, log);
}

RunFolder RunFolder::go_on(const fs::path& path, const std::string& run, int64_t bytes, const Log& log) {
  RunFolder folder;
  folder.path_ = path;
  folder.log_ = log;
  folder.run_ = run;
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(Kind::io, cat("cannot create the run folder '", path.string(), "': ", error.message()));
  const fs::path metrics = folder.metrics_path();
  folder.metrics_ = open_locked(metrics);
  remove_parts(path, log);
  if (fs::file_size(metrics, error) > 0 && (run_of(path) != run || !ends_a_line(metrics, bytes))) {
    const int before = folder.metrics_;  // locked until the new file is
    keep_foreign(metrics, log);
    folder.metrics_ = open_locked(metrics);
    ::close(before);
  }
  if (fs::exists(path / kAbout) && run_in_about(path / kAbout) != run) keep_foreign(path / kAbout, log);
  if (const auto about = run_in_about(path / kAbout); about == run)
    folder.unasked_models_ = unasked_models_in(Json::read_file(path / kAbout));
  const off_t found = ::lseek(folder.metrics_, 0, SEEK_END);
  folder.metrics_bytes_ = std::min<int64_t>(bytes, found);
  if (found < 0 || ::ftruncate(folder.metrics_, folder.metrics_bytes_) != 0)
    throw Error(Kind::io, cat("cannot cut '", metrics.string(), "': ", std::strerror(errno)));
  if (found < bytes)
    log.warning("'", metrics.string(), "' has ", found, " bytes, and the checkpoint was saved at ", bytes,
                ": lines of the run are missing");
  return folder;
}

std::string RunFolder::run_of(const fs::path& folder) {
  std::ifstream metrics(folder / kMetrics);
  std::string line;
  if (!std::getline(metrics, line)) return {};
  try {
    const Json start = Json::parse(line, kMetrics);
    const Json* run = start.find("run");
    return run && run->string() ? *run->string() : "";
  } catch (const Error&) {
    return {};  // not of ours
  }
}

bool RunFolder::belongs_to(const fs::path& folder, const std::string& run) {
  return !folder.empty() && !run.empty() && (run_in_about(folder / kAbout) == run || run_of(folder) == run);
}

void RunFolder::set_unasked_models(std::vector<int64_t> iterations) {
  if (path_.empty() || !about_.object() || iterations == unasked_models_) return;
  unasked_models_ = std::move(iterations);
  about_ = with_unasked_models(about_, unasked_models_);
  try {
    write_text(path_ / kAbout, about_.text(2) + "\n");
  } catch (const Error& error) {
    log_->warning(error.what());
  }
}

fs::path RunFolder::metrics_path() const { return path_.empty() ? fs::path() : path_ / kMetrics; }

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)),
      log_(std::move(other.log_)),
      run_(std::move(other.run_)),
      metrics_(std::exchange(other.metrics_, -1)),
      metrics_bytes_(other.metrics_bytes_),
      lost_lines_(other.lost_lines_),
      about_(std::move(other.about_)),
      unasked_models_(std::move(other.unasked_models_)) {}

RunFolder::~RunFolder() {
  if (metrics_ >= 0) ::close(metrics_);
}

void RunFolder::add_metrics(const Json& line) {
  if (metrics_ < 0) return;
  const std::string text = line.text() + "\n";
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote =
        ::pwrite(metrics_, text.data() + done, text.size() - done, metrics_bytes_ + static_cast<int64_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  if (done < text.size()) {
    const int reason = errno;
    (void)!::ftruncate(metrics_, metrics_bytes_);  // no half line; the next line overwrites what it could not remove
    if (lost_lines_++ == 0)
      log_->warning("cannot write '", (path_ / kMetrics).string(), "': ", std::strerror(reason),
                    "; training goes on without its lines");
    return;
  }
  metrics_bytes_ += static_cast<int64_t>(text.size());
  if (lost_lines_ > 0)
    log_->warning("'", (path_ / kMetrics).string(), "' can be written again; ", lost_lines_,
                  lost_lines_ == 1 ? " line is" : " lines are", " missing");
  lost_lines_ = 0;
}

void RunFolder::write_config(const Json& effective) const {
  if (!path_.empty()) write_text(path_ / "config.json", with_escaped_variables(effective).text(2) + "\n");
}

void RunFolder::write_plan(const std::string& json) const {
  if (!path_.empty()) write_text(path_ / "plan.json", json + "\n");
}

void RunFolder::write_profile(const Json& profile) const {
  if (!path_.empty()) write_text(path_ / "profile.json", profile.text(2) + "\n");
}

void RunFolder::write_start(const Json& data, const Json& eval_data, const Json& start) {
  if (path_.empty()) return;
  const fs::path file = path_ / kAbout;
  std::optional<Json> before;
  try {
    if (metrics_bytes_ > 0 && fs::exists(file)) before = Json::read_file(file);
  } catch (const Error& error) {
    log_->warning("what '", file.string(), "' says of earlier starts is lost: ", error.what());
  }
  about_ = about_run_file(run_, data, eval_data, start, before ? &*before : nullptr);
  about_ = with_unasked_models(about_, unasked_models_);
  write_text(file, about_.text(2) + "\n");
}

void RunFolder::write_end(const std::string& how) const {
  if (!path_.empty() && about_.object()) write_text(path_ / kAbout, with_end(about_, how).text(2) + "\n");
}

void RunFolder::write_summary(const TrainSummary& summary) const {
  if (!path_.empty()) write_text(path_ / "summary.json", to_json(summary).text(2) + "\n");
}

Json to_json(const TrainSummary& summary) {
  Json files(Json::Array{});
  for (const fs::path& file : summary.model_files) files.add(file.string());
  Json json(Json::Object{{"schema", kRunSchema},
                         {"device", summary.device},
                         {"iterations", summary.iterations},
                         {"samples", summary.samples},
                         {"seconds", summary.seconds},
                         {"samples_per_second", summary.samples_per_second},
                         {"final_loss", summary.final_loss},
                         {"metrics", numbers(summary.metrics)},
                         {"best_possible", numbers(summary.best_possible)},
                         {"memory_in_use", Json(Json::Array(summary.memory.begin(), summary.memory.end()))},
                         {"skipped_records", summary.skipped_records},
                         {"interrupted", summary.interrupted},
                         {"model_files", std::move(files)}});
  if (!summary.undefined.empty())
    json.set("undefined", Json::Object(summary.undefined.begin(), summary.undefined.end()));
  if (!summary.memory_parts.empty()) {
    Json parts(Json::Object{});
    for (const auto& [name, bytes] : summary.memory_parts) parts.set(name, bytes);
    json.set("memory_parts", std::move(parts));
  }
  if (summary.loss_scale) {
    json.set("skipped_steps", summary.skipped_steps);
    json.set("loss_scale", *summary.loss_scale);
  }
  if (const auto& between = summary.between_hosts)
    json.set("sent_to_other_hosts",
             Json(Json::Object{{"bytes", between->sent}, {"of_full_size", between->of_full_size}}));
  if (!summary.tables.empty()) json.set("tables", counts(summary.tables));
  if (summary.best_iteration) {
    json.set("best_iteration", *summary.best_iteration);
    json.set("best_metrics", numbers(summary.best_metrics));
  }
  if (summary.stopped_at) json.set("stopped_at", *summary.stopped_at);
  return json;
}

}  // namespace hctr
