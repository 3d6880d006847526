#include "store/block_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/expect.h"

namespace hctr {

BlockWriter::BlockWriter(fs::path path, int64_t block_bytes)
    : path_(std::move(path)), block_bytes_((block_bytes + kPage - 1) / kPage * kPage) {
  cached_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (cached_ < 0) throw Error(Kind::io, cat("cannot open '", path_.string(), "': ", std::strerror(errno)));
  free_.reserve(kBlocks);  // serve() adds blocks in its threads, and must not allocate
  direct_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);  // fails on file systems that lack direct I/O
  try {
    for (size_t t = 0; t < kThreads; ++t) threads_.emplace_back([this] { serve(); });
  } catch (...) {
    end();
    throw;
  }
}

BlockWriter::~BlockWriter() { end(); }

void BlockWriter::end() noexcept {
  {
    const std::lock_guard lock(mutex_);
    jobs_.clear();
    ending_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  ::close(cached_);
  if (direct_ >= 0) ::close(direct_);
  for (std::byte* const block : all_) std::free(block);
}

void BlockWriter::check() const {
  if (error_ != 0) throw Error(Kind::io, cat("cannot write '", path_.string(), "': ", std::strerror(error_)));
}

std::byte* BlockWriter::take() {
  std::unique_lock lock(mutex_);
  if (free_.empty() && all_.size() < kBlocks) {
    void* const memory = std::aligned_alloc(static_cast<size_t>(kPage), static_cast<size_t>(block_bytes_));
    if (!memory) throw std::bad_alloc();
    all_.push_back(static_cast<std::byte*>(memory));
    free_.push_back(all_.back());
  }
  written_.wait(lock, [this] { return error_ != 0 || !free_.empty(); });
  check();
  std::byte* const block = free_.back();
  free_.pop_back();
  return block;
}

void BlockWriter::write(int64_t offset, std::byte* block, int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({offset, block, bytes});
  }
  wanted_.notify_one();
}

void BlockWriter::finish() {
  std::unique_lock lock(mutex_);
  written_.wait(lock, [this] { return error_ != 0 || (jobs_.empty() && writing_ == 0); });
  check();
}

int BlockWriter::put(const Job& job) {
  bool direct = direct_ >= 0 && job.offset % kPage == 0 && job.bytes % kPage == 0;
  for (int64_t done = 0; done < job.bytes;) {
    const ssize_t put = ::pwrite(direct ? direct_ : cached_, job.block + done, static_cast<size_t>(job.bytes - done),
                                 static_cast<off_t>(job.offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && direct && errno == EINVAL) {  // the disk needs a larger alignment
      direct = false;
      continue;
    }
    if (put <= 0) return put < 0 ? errno : EIO;
    done += put;
    direct = direct && done % kPage == 0;
  }
  return 0;
}

void BlockWriter::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    ++writing_;
    const bool failed = error_ != 0;
    lock.unlock();
    const int error = failed ? 0 : put(job);
    lock.lock();
    --writing_;
    if (error_ == 0) error_ = error;
    free_.push_back(job.block);
    written_.notify_all();
  }
}

}  // namespace hctr
