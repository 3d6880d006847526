// Runs with followed data. Rank 0 finds new files and broadcasts their names, so that all ranks read the same files in
// the same order.
#include "core/base/progress.h"
#include "train/run.h"

namespace hctr {
namespace {

constexpr double kSecondsToSay = 5;  // waits longer than this are logged

Json to_json(const NewFiles& files) {
  return Json(Json::Object{{"names", hctr::to_json(files.names)}, {"end", files.end}});
}

NewFiles new_files(const std::string& text) {
  const Json json = Json::parse(text, "new files");
  NewFiles files{.end = *json.find("end")->boolean()};
  for (const Json& name : *json.find("names")->array()) files.names.push_back(*name.string());
  return files;
}

}  // namespace

void Run::start_following() {
  if (!config_.data.follow) return;
  if (from_) {
    now_.epochs = 0;  // a finished pass does not end the resumed run, because new files may have arrived
    expect_same_followed_file();
  }
  feed_ = std::make_shared<FileFeed>(now_.followed);
  if (comm_.rank() == 0) watch_ = std::make_unique<FileWatch>(arriving_files(config_.data.source, now_.followed));
}

void Run::expect_same_followed_file() const {
  if (comm_.rank() != 0 || now_.followed_bytes < 0) return;
  const std::string& name = now_.followed.at(static_cast<size_t>(now_.reader.file));
  const fs::path path = path_of_arrived(config_.data.source, name);
  if (const auto bytes = static_cast<int64_t>(fs::file_size(path)); bytes != now_.followed_bytes)
    throw Error(Kind::data, cat("'", path.string(), "' has ", bytes, " bytes, but had ", now_.followed_bytes,
                                " when the checkpoint '", from_->folder.string(),
                                "' was saved in the middle of "
                                "the file"));
}

void Run::note_followed() {
  now_.followed = feed_->names();
  now_.followed_bytes = -1;
  const auto file = static_cast<size_t>(now_.reader.file);
  std::error_code gone;  // an error is accepted, because a file that was read completely may be gone
  if (now_.reader == ReaderPosition{} || file >= now_.followed.size()) return;
  const auto bytes = fs::file_size(path_of_arrived(config_.data.source, now_.followed[file]), gone);
  if (!gone) now_.followed_bytes = static_cast<int64_t>(bytes);
}

bool Run::follow_news() const { return watch_ && watch_->has_news(); }

void Run::exchange_new_files(bool waits) {
  NewFiles news;
  std::optional<Error> failed;
  if (watch_) try {
      news = watch_->take();
      const bool starved = waits && feed_->waited_for() && news.empty();
      if (!starved)
        waiting_since_.reset();
      else if (!waiting_since_)
        waiting_since_ = report_->seconds();
      say_waiting();
      const auto& idle = config_.data.follow_idle;
      if (starved && idle && report_->seconds() - *waiting_since_ >= 60 * *idle) {
        news.end = true;
        report_->event(cat("No file has arrived in '", config_.data.source, "' for ",
                           readable_time(report_->seconds() - *waiting_since_), ": training ends."));
      }
    } catch (...) {
      failed = current_error();
    }
  throw_on_all_ranks(comm_, failed);
  feed_->add(new_files(comm_.broadcast(to_json(news).text(), 0)));
}

void Run::say_waiting() {
  if (!waiting_since_) {
    said_waiting_ = false;
    return;
  }
  const double waited = report_->seconds() - *waiting_since_;
  report_->waiting(now_.samples, cat("waiting for files, ", readable_time(waited)));
  if (waited < kSecondsToSay || std::exchange(said_waiting_, true)) return;
  report_->event(cat("Waiting for files in '", config_.data.source, "' after iteration ", now_.iterations, "; ",
                     feed_->size(), feed_->size() == 1 ? " file has" : " files have", " arrived so far."));
}

}  // namespace hctr
