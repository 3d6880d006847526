#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>

#include "config/config_file.h"
#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/input_files.h"
#include "train/run_about.h"
#include "train/run_folder_files.h"

namespace hctr {
namespace {

/// Opens `metrics` and locks it. The process holds the lock until the process ends.
int open_locked(const fs::path& metrics) {
  std::error_code error;
  if (fs::exists(metrics, error) && !fs::is_regular_file(metrics, error))
    throw Error(Kind::io,
                cat("cannot write '", metrics.string(), "': expected a regular file; ", "name another --run-dir"));
  const int file = ::open(metrics.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) throw Error(Kind::io, cat("cannot write '", metrics.string(), "': ", std::strerror(errno)));
  // file systems without locks are accepted
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return file;
  ::close(file);
  throw Error(Kind::io, cat("the run folder '", metrics.parent_path().string(),
                            "' is in use by a running job: name another --run-dir"));
}

std::string new_run_id() {
  std::random_device source;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%08x%08x", source(), source());
  return digits;
}

}  // namespace

RunFolder::RunFolder(const fs::path& wanted, const fs::path& config, const std::vector<fs::path>& inputs,
                     const Log& log)
    : path_(wanted.empty() ? new_run_folder(config) : wanted), log_(log), run_(new_run_id()) {
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
  remove_dead_parts(path_, log);
}

RunFolder RunFolder::unwritten() {
  RunFolder folder;
  folder.run_ = new_run_id();
  return folder;
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
  remove_dead_parts(path, log);
  if (fs::file_size(metrics, error) > 0 && (run_in_metrics(path / kMetrics) != run || !ends_a_line(metrics, bytes))) {
    const int before = folder.metrics_;  // stays locked until the new file is locked
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
    log.warning("'", metrics.string(), "' has ", found, " bytes, but the checkpoint was saved at ", bytes,
                ": lines of the run are missing");
  return folder;
}

bool RunFolder::belongs_to(const fs::path& folder, const std::string& run) {
  if (folder.empty() || run.empty()) return false;
  return run_in_about(folder / kAbout) == run || run_in_metrics(folder / kMetrics) == run;
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
    // removes the incomplete line; if this fails, the next line overwrites it
    (void)!::ftruncate(metrics_, metrics_bytes_);
    if (lost_lines_++ == 0)
      log_->warning("cannot write '", (path_ / kMetrics).string(), "': ", std::strerror(reason),
                    "; training continues without lines in this file");
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
  if (run_in_about(file) == run_) before = Json::read_file(file);
  about_ = about_run_file(run_, data, eval_data, start, before ? &*before : nullptr);
  about_ = with_unasked_models(about_, unasked_models_);
  write_text(file, about_.text(2) + "\n");
}

void RunFolder::write_end(const std::string& how) const {
  if (!path_.empty() && about_.object()) write_text(path_ / kAbout, with_end(about_, how).text(2) + "\n");
}

void RunFolder::write_summary(const TrainSummary& summary) const {
  if (!path_.empty()) write_text(path_ / kSummary, to_json(summary).text(2) + "\n");
}

}  // namespace hctr
