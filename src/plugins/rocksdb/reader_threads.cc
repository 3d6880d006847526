#include "plugins/rocksdb/reader_threads.h"

#include <algorithm>

namespace hctr {

ReaderThreads::ReaderThreads(int32_t count) {
  for (int32_t i = 0; i < count; ++i) threads_.emplace_back([this] { serve(); });
}

ReaderThreads::~ReaderThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReaderThreads::work(Job& job) {
  int64_t done = 0;
  for (int64_t piece = 0; (piece = job.next.fetch_add(1)) < job.pieces; ++done) (*job.body)(piece);
  if (done == 0) return;
  const std::lock_guard lock(mutex_);
  job.done += done;
  if (job.done == job.pieces) finished_.notify_all();
}

void ReaderThreads::run(int64_t pieces, const std::function<void(int64_t)>& body) {
  if (pieces <= 1 || threads_.empty()) {
    for (int64_t piece = 0; piece < pieces; ++piece) body(piece);
    return;
  }
  const auto job = std::make_shared<Job>();
  job->pieces = pieces;
  job->body = &body;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
  }
  wanted_.notify_all();
  work(*job);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return job->done == job->pieces; });
  std::erase(jobs_, job);
}

void ReaderThreads::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    const std::shared_ptr<Job> job = jobs_.front();
    lock.unlock();
    work(*job);
    lock.lock();
    if (!jobs_.empty() && jobs_.front() == job) jobs_.pop_front();  // all pieces of this job have been started
  }
}

}  // namespace hctr
