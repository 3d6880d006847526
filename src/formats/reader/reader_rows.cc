// Implementation of reading by rows; see reader.h.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/expect.h"
#include "formats/reader/one_hot_batch.h"
#include "formats/reader/reader_run.h"
#include "formats/reader/row_tasks.h"

namespace hctr {
namespace {

/// Parses rows only to report their errors.
void check_rows(RowParser& parser, BatchShape shape, bool narrow, const RecordRange& rows) {
  shape.samples = rows.count;
  for (BatchShape::Table& table : shape.tables) table.key_capacity = table.slots * rows.count;
  const BatchLayout layout(shape);
  std::vector<std::byte> memory(layout.bytes);
  OneHotBatch unused(layout, memory.data(), narrow);
  unused.start(rows.count);
  parser.parse(rows.file, rows.first, rows.count, unused.from(0));
}

/// Workers receive tasks in set order and fill one buffer after another. A batch is ready when all its tasks are done.
class RowRun : public ReaderRun {
 public:
  RowRun(ReaderSet& set, const RowMap& map, const ReaderPosition& from)
      : set_(set), map_(map), skipped_(from.bad_records), tasks_(set, map, from) {
    for (std::byte* memory : set.buffers) buffers_.emplace_back(OneHotBatch(set.layout, memory, map.narrow()));
    try {
      for (int i = 0; i < set.options.workers; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {  // a thread failed to start, so join the other threads before members are destroyed
      end();
      throw;
    }
  }

  ~RowRun() override { end(); }

  bool wait(std::chrono::milliseconds limit) override {
    std::unique_lock lock(mutex_);
    return ready_.wait_for(lock, limit, [&] { return has_next(); });
  }

  std::optional<ReadyBatch> next() override {
    std::unique_lock lock(mutex_);
    Buffer& buffer = buffers_[delivering_];
    ready_.wait(lock, [&] { return has_next(); });
    if (buffer.failed()) std::rethrow_exception(buffer.error);
    if (buffer.stage != Stage::ready) return std::nullopt;
    buffer.stage = Stage::held;
    const ReadyBatch ready{static_cast<int>(delivering_), buffer.after, skipped_};
    delivering_ = (delivering_ + 1) % buffers_.size();
    return ready;
  }

  void release(int index) override {
    {
      const std::lock_guard lock(mutex_);
      const auto b = static_cast<size_t>(index);
      HCTR_EXPECT(b < buffers_.size() && buffers_[b].stage == Stage::held, "buffer ", index,
                  " was released, but is not in use");
      buffers_[b].stage = Stage::free;
    }
    free_.notify_all();
  }

  int64_t parsed_rows() const override {
    const std::lock_guard lock(mutex_);
    return parsed_;
  }

 private:
  void end() {
    {
      const std::lock_guard lock(mutex_);
      stop();
    }
    for (std::thread& worker : workers_) worker.join();
  }

  /// Whether next() would return or throw without blocking.
  bool has_next() const {
    const Buffer& buffer = buffers_[delivering_];
    return buffer.stage == Stage::ready || buffer.failed() || (stopped_ && buffer.stage != Stage::filling);
  }

  enum class Stage { free, filling, ready, held };
  struct Buffer {
    explicit Buffer(OneHotBatch to) : batch(std::move(to)) {}
    bool failed() const { return error && open == 0; }

    OneHotBatch batch;
    Stage stage = Stage::free;
    int64_t rows = 0;              // number of rows over all ranks
    int64_t issued = 0, open = 0;  // issued: number of issued tasks; open: issued tasks not yet done
    bool all_issued = false;
    ReaderPosition after;  // position after the batch; set once all_issued is true
    std::exception_ptr error;
    int64_t error_number = 0;  // index of the first failed task
  };
  /// A task assigned to a worker.
  struct Work {
    RowTask task;
    Buffer* buffer = nullptr;
    int64_t number = 0;  // index of the task in its batch
  };

  void work() {
    std::unique_ptr<RowParser> parser;
    for (Work work; next_task(work);) try {
        if (!parser) parser = map_.row_parser();
        const RecordRange& rows = work.task.rows;
        if (work.task.check_only)
          check_rows(*parser, set_.layout.shape, map_.narrow(), rows);
        else if (rows.count > 0)
          parser->parse(rows.file, rows.first, rows.count, work.buffer->batch.from(work.task.row));
        done(work);
      } catch (...) {
        fail(work, std::current_exception());
      }
  }

  /// Waits for a free buffer and sets the next task. Returns false if there are no more tasks.
  bool next_task(Work& work) {
    std::unique_lock lock(mutex_);
    while (!filling_ && !stopped_) {
      Buffer& buffer = buffers_[turn_];
      if (buffer.stage != Stage::free)
        free_.wait(lock);
      else if (buffer.rows = tasks_.begin(); buffer.rows == 0)
        stop();
      else
        filling_ = &buffer;
    }
    if (stopped_) return false;
    Buffer& buffer = *filling_;
    if (buffer.stage == Stage::free) {
      buffer.stage = Stage::filling;
      buffer.batch.start(set_.rows_of_rank(buffer.rows));
      buffer.issued = 0;
      buffer.all_issued = false;
    }
    work = {.task = tasks_.next(), .buffer = &buffer, .number = buffer.issued++};
    ++buffer.open;
    if (tasks_.whole()) {
      buffer.all_issued = true;
      buffer.after = tasks_.position();
      turn_ = (turn_ + 1) % buffers_.size();
      filling_ = nullptr;
    }
    return true;
  }

  void done(const Work& work) {
    std::unique_lock lock(mutex_);
    Buffer& buffer = *work.buffer;
    if (!work.task.check_only) parsed_ += work.task.rows.count;
    if (--buffer.open > 0) return;
    if (!buffer.error) {
      if (!buffer.all_issued) return;
      lock.unlock();  // all tasks are done, so no other thread uses the buffer
      buffer.batch.finish();
      set_.describe(buffer.batch.state(), buffer.rows, buffer.after.samples - buffer.rows);
      if (set_.options.on_filled) set_.options.on_filled(buffer.batch.view());
      lock.lock();
      buffer.stage = Stage::ready;
    }
    ready_.notify_one();
  }

  /// Records the error and stops issuing tasks. Tasks that were already issued may also fail.
  void fail(const Work& work, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    Buffer& buffer = *work.buffer;
    if (!buffer.error || work.number < buffer.error_number) {
      buffer.error = std::move(error);
      buffer.error_number = work.number;
    }
    --buffer.open;
    stop();
  }

  /// Stops issuing tasks.
  void stop() {
    stopped_ = true;
    free_.notify_all();
    ready_.notify_all();
  }

  ReaderSet& set_;
  const RowMap& map_;
  const int64_t skipped_;
  mutable std::mutex mutex_;
  std::condition_variable free_, ready_;
  RowTasks tasks_;
  std::vector<Buffer> buffers_;
  // turn_: buffer whose tasks are issued next; delivering_: buffer that next() returns next
  size_t turn_ = 0, delivering_ = 0;
  Buffer* filling_ = nullptr;  // buffer with tasks still to issue; null: none
  bool stopped_ = false;
  int64_t parsed_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<ReaderRun> run_by_rows(ReaderSet& set, const RowMap& rows, const ReaderPosition& from) {
  return std::make_unique<RowRun>(set, rows, from);
}

}  // namespace hctr
