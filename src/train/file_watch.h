// On rank 0, watches the followed source of a run for new files.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "formats/io/arriving_files.h"
#include "train/run_progress.h"

namespace hctr {

/// A thread that lists the source twice a second.
class FileWatch {
 public:
  explicit FileWatch(std::unique_ptr<ArrivingFiles>);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  /// Whether take() has files to return or an error to throw.
  bool has_news() const { return has_news_; }
  /// Returns the files that arrived since the last call. Errors: those of ArrivingFiles::look().
  NewFiles take();

 private:
  void run();

  std::unique_ptr<ArrivingFiles> files_;
  std::mutex mutex_;
  std::condition_variable change_;
  NewFiles news_;
  std::exception_ptr error_;
  bool closed_ = false;
  std::atomic<bool> has_news_ = false;
  std::thread thread_;
};

/// With "follow", on rank 0: the names of files from which columns, labels and keys can be determined before training.
/// A new run waits for the first file, or until `stop` is nonzero, and logs that it waits. `from`: the progress of a
/// resumed run, whose checkpoint lists the files to return; null: a new run. Errors: Error(interrupted); Error(data) if
/// the data end before the first file.
std::vector<std::string> first_followed_files(const DataSection&, const RunProgress* from, const std::atomic<int>* stop,
                                              const Log&);
/// The paths of the named files in this rank's source. Omits files that no longer exist.
std::vector<fs::path> paths_of_followed(const DataSection&, const std::vector<std::string>& names);
/// Collective. Broadcasts rank 0's file names.
void broadcast_followed(Communicator&, const std::vector<std::string>& of_rank_0, DataSection&);

}  // namespace hctr
