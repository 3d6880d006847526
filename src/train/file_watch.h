// Looks for files that are added to the followed source of a run, on rank 0.
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

/// A thread that looks twice a second.
class FileWatch {
 public:
  explicit FileWatch(std::unique_ptr<ArrivingFiles>);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  /// Whether take() has something to return or to throw.
  bool has_news() const { return has_news_; }
  /// What has come since the last call. Errors: those of ArrivingFiles::look().
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

/// On rank 0, with "follow": the names of files from which columns, labels and keys can be learned before training. A
/// run that starts anew waits for the first file, which the log says, until `stop` is other than 0. `from`: a run that
/// goes on takes what it knows. Errors: Error(interrupted); Error(data) when the data end without a file.
std::vector<std::string> first_followed_files(const DataSection&, const RunProgress* from, const std::atomic<int>* stop,
                                              const Log&);
/// The paths of these files, for this rank's source; without those that are gone.
std::vector<fs::path> paths_of_followed(const DataSection&, const std::vector<std::string>& names);
/// Collective. Gives every rank those of rank 0.
void broadcast_followed(Communicator&, const std::vector<std::string>& of_rank_0, DataSection&);

}  // namespace hctr
