#include "train/file_watch.h"

#include <algorithm>

namespace hctr {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(500);
constexpr size_t kFirstFiles = 8;  // maximum number of files that first_followed_files() returns

}  // namespace

FileWatch::FileWatch(std::unique_ptr<ArrivingFiles> files) : files_(std::move(files)), thread_([this] { run(); }) {}

FileWatch::~FileWatch() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  change_.notify_all();
  thread_.join();
}

void FileWatch::run() {
  std::unique_lock lock(mutex_);
  while (!closed_ && !news_.end && !error_) {
    lock.unlock();
    NewFiles found;
    std::exception_ptr failed;
    try {
      found = files_->look();
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    news_.names.insert(news_.names.end(), found.names.begin(), found.names.end());
    news_.end = found.end;
    error_ = failed;
    has_news_ = has_news_ || !found.empty() || failed;
    change_.wait_for(lock, kBetweenLooks, [&] { return closed_; });
  }
}

NewFiles FileWatch::take() {
  const std::lock_guard lock(mutex_);
  has_news_ = false;
  if (news_.names.empty() && error_) std::rethrow_exception(error_);
  NewFiles taken{.names = std::exchange(news_.names, {}), .end = news_.end};
  has_news_ = error_ != nullptr;
  return taken;
}

std::vector<std::string> first_followed_files(const DataSection& data, const RunProgress* from,
                                              const std::atomic<int>* stop, const Log& log) {
  if (!data.follow) return {};
  std::vector<std::string> names;
  if (from) {
    const auto begin = std::min(static_cast<size_t>(from->reader.file), from->followed.size());
    names.assign(from->followed.begin() + static_cast<int64_t>(begin), from->followed.end());
  }
  const std::unique_ptr<ArrivingFiles> files = arriving_files(data.source, from ? from->followed : names);
  const auto begin = std::chrono::steady_clock::now();
  for (bool said = false; names.empty();) {
    const NewFiles found = files->look();
    names = found.names;
    if (!names.empty() || from) break;
    if (found.end)
      throw Error(Kind::data, cat("'", data.source,
                                  "': the data set is empty: the end was marked "
                                  "before any file arrived"));
    if (stop && *stop != 0)
      throw Error(Kind::interrupted, cat("stopped while '", data.source, "' contained no file yet"));
    if (!std::exchange(said, true)) log.info("Waiting for the first file in '", data.source, "'.");
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (data.follow_idle && waited >= 60 * *data.follow_idle)
      throw Error(Kind::data, cat("'", data.source, "': no file has arrived within the ", *data.follow_idle,
                                  " minutes of \"follow_idle\""));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  names.resize(std::min(names.size(), kFirstFiles));
  return names;
}

std::vector<fs::path> paths_of_followed(const DataSection& data, const std::vector<std::string>& names) {
  std::vector<fs::path> paths;
  for (const std::string& name : names) try {
      paths.push_back(path_of_arrived(data.source, name));
    } catch (const Error&) {  // the error is ignored, because the reader of the file reports it again
    }
  return paths;
}

void broadcast_followed(Communicator& comm, const std::vector<std::string>& of_rank_0, DataSection& data) {
  if (!data.follow) return;
  const Json names = Json::parse(comm.broadcast(comm.rank() == 0 ? to_json(of_rank_0).text() : "", 0), "file names");
  std::vector<std::string> all;
  for (const Json& name : *names.array()) all.push_back(*name.string());
  data.first_files = paths_of_followed(data, all);
}

}  // namespace hctr
