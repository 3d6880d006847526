#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "data/reader/one_hot_batch.h"
#include "data/reader/reader_run.h"
#include "data/reader/row_tasks.h"

namespace hctr {
namespace {

/// Parses rows for nothing but their errors.
void look_at(RowParser& parser, BatchShape shape, const Stretch& rows) {
  shape.samples = rows.count;
  for (BatchShape::Table& table : shape.tables) table.key_capacity = table.slots * rows.count;
  const BatchLayout layout(shape);
  std::vector<std::byte> memory(layout.bytes);
  OneHotBatch nowhere(layout, memory.data());
  nowhere.start(rows.count);
  parser.parse(rows.file, rows.first, rows.count, nowhere.from(0));
}

/// Tasks are dealt in the order of the set, into one slot after the other as these become free. A batch is ready when
/// all of its tasks are done.
class RowRun : public ReaderRun {
 public:
  RowRun(ReaderSet& set, const RowMap& map, const ReaderPosition& from)
      : set_(set), map_(map), skipped_(from.bad_records), tasks_(set, map, from) {
    for (std::byte* memory : set.slots) slots_.emplace_back(OneHotBatch(set.layout, memory));
    for (int i = 0; i < set.options.workers; ++i) workers_.emplace_back([this] { work(); });
  }

  ~RowRun() override {
    {
      const std::lock_guard lock(mutex_);
      stop();
    }
    for (std::thread& worker : workers_) worker.join();
  }

  std::optional<Ready> next() override {
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[delivering_];
    ready_.wait(lock, [&] {
      return slot.stage == Stage::ready || slot.failed() || (stopped_ && slot.stage != Stage::filling);
    });
    if (slot.failed()) std::rethrow_exception(slot.error);
    if (slot.stage != Stage::ready) return std::nullopt;
    slot.stage = Stage::held;
    const Ready ready{static_cast<int>(delivering_), slot.behind, skipped_};
    delivering_ = (delivering_ + 1) % slots_.size();
    return ready;
  }

  void release(int slot) override {
    {
      const std::lock_guard lock(mutex_);
      const auto s = static_cast<size_t>(slot);
      HCTR_EXPECT(s < slots_.size() && slots_[s].stage == Stage::held, "slot ", slot, " released without being held");
      slots_[s].stage = Stage::free;
    }
    free_.notify_all();
  }

  int64_t parsed_rows() const override {
    const std::lock_guard lock(mutex_);
    return parsed_;
  }

 private:
  enum class Stage { free, filling, ready, held };
  struct Slot {
    explicit Slot(OneHotBatch to) : batch(std::move(to)) {}
    bool failed() const { return error && open == 0; }

    OneHotBatch batch;
    Stage stage = Stage::free;
    int64_t rows = 0;             // of all ranks
    int64_t dealt = 0, open = 0;  // tasks: dealt so far, and of these not done
    bool all_dealt = false;
    ReaderPosition behind;  // once all are dealt
    std::exception_ptr error;
    int64_t error_number = 0;  // of the first task that failed
  };
  /// What a worker is to do.
  struct Work {
    RowTask task;
    Slot* slot = nullptr;
    int64_t number = 0;  // of the tasks of the batch
  };

  void work() {
    std::unique_ptr<RowParser> parser;
    for (Work work; deal(work);) try {
        if (!parser) parser = map_.row_parser();
        const Stretch& rows = work.task.rows;
        if (work.task.look)
          look_at(*parser, set_.layout.shape, rows);
        else if (rows.count > 0)
          parser->parse(rows.file, rows.first, rows.count, work.slot->batch.from(work.task.row));
        done(work);
      } catch (...) {
        fail(work, std::current_exception());
      }
  }

  /// The next task, once its slot is free. False when there is none.
  bool deal(Work& work) {
    std::unique_lock lock(mutex_);
    while (!cutting_ && !stopped_) {
      Slot& slot = slots_[turn_];
      if (slot.stage != Stage::free)
        free_.wait(lock);
      else if (slot.rows = tasks_.begin(); slot.rows == 0)
        stop();
      else
        cutting_ = &slot;
    }
    if (stopped_) return false;
    Slot& slot = *cutting_;
    if (slot.stage == Stage::free) {
      slot.stage = Stage::filling;
      slot.batch.start(set_.share_of(slot.rows));
      slot.dealt = 0;
      slot.all_dealt = false;
    }
    work = {.task = tasks_.next(), .slot = &slot, .number = slot.dealt++};
    ++slot.open;
    if (tasks_.whole()) {
      slot.all_dealt = true;
      slot.behind = tasks_.position();
      turn_ = (turn_ + 1) % slots_.size();
      cutting_ = nullptr;
    }
    return true;
  }

  void done(const Work& work) {
    std::unique_lock lock(mutex_);
    Slot& slot = *work.slot;
    if (!work.task.look) parsed_ += work.task.rows.count;
    if (--slot.open > 0) return;
    if (!slot.error) {
      if (!slot.all_dealt) return;
      lock.unlock();  // nobody else has the slot now
      slot.batch.finish();
      set_.describe(slot.batch.state(), slot.rows, slot.behind.samples - slot.rows);
      lock.lock();
      slot.stage = Stage::ready;
    }
    ready_.notify_one();
  }

  /// Nothing behind an error is wanted; tasks in front of it may still fail.
  void fail(const Work& work, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    Slot& slot = *work.slot;
    if (!slot.error || work.number < slot.error_number) {
      slot.error = std::move(error);
      slot.error_number = work.number;
    }
    --slot.open;
    stop();
  }

  /// No more tasks are dealt.
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
  std::vector<Slot> slots_;
  size_t turn_ = 0, delivering_ = 0;  // slots: of the batch that is cut, or will be; and of the one next() waits for
  Slot* cutting_ = nullptr;           // whose tasks are not all dealt
  bool stopped_ = false;
  int64_t parsed_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<ReaderRun> run_of_rows(ReaderSet& set, const RowMap& rows, const ReaderPosition& from) {
  return std::make_unique<RowRun>(set, rows, from);
}

}  // namespace hctr
