#include "data/reader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/queue.h"
#include "data/batch_fill.h"
#include "data/chunk_source.h"
#include "data/file_list.h"
#include "data/ordered_workers.h"
#include "data/slot_ring.h"

namespace hctr {
namespace {

/// Objects to be used again instead of being made anew: their memory is warm.
template <class T>
class Recycler {
 public:
  std::unique_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return std::make_unique<T>();
    std::unique_ptr<T> one = std::move(spare_.back());
    spare_.pop_back();
    return one;
  }
  void give(std::unique_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> spare_;
};

/// What a parsing thread works on.
struct Work {
  NormChunk chunk;
  ParseScratch scratch;
  int64_t pass = 0;
};

struct Parsed {
  std::unique_ptr<SampleBlock> block;
  int64_t pass = 0;
};

void expect_same_shape(const BatchShape& batch, const RecordShape& record) {
  bool same = batch.label_dim == record.label_dim && batch.dense_dim == record.dense_dim && batch.tables.size() == record.inputs.size();
  for (size_t i = 0; same && i < batch.tables.size(); ++i)
    same = batch.tables[i].slots == record.inputs[i].slots &&
           (batch.tables[i].keep > 0 || batch.tables[i].key_capacity >= batch.samples * record.inputs[i].max_keys);
  HCTR_EXPECT(same, "the layout of a batch was made for another Data layer");
}

}  // namespace

struct Reader::Set {
  std::string name;
  std::vector<fs::path> files;
  NormDemands demands;
  BatchLayout layout;
  std::vector<std::byte*> slots;
  ReaderOptions options;
  Log log;
  int64_t samples = 0;
  int64_t rank_begin = 0, rank_end = 0;  // this rank's rows of a batch

  Recycler<SampleBlock> blocks;
  std::atomic<int64_t> skipped = 0;
  std::mutex warned_mutex;
  std::set<fs::path> warned;

  void count_skipped(int64_t bad, const NormInfo& info) {
    if (bad == 0) return;
    skipped += bad;
    const std::lock_guard lock(warned_mutex);
    if (warned.insert(info.path).second)
      log.warning("'", info.path.string(), "': records fail their check sum and are left out (", bad, " in the first bad part)");
  }
};

struct Reader::Run {
  explicit Run(Set& of)
      : set(of), source(of.files, of.demands, of.options.repeat),
        workers(of.options.workers, [this](Work& work) { return cut(work); }, [this](Work& work) { return parse(work); }),
        ready(of.slots.size()), ring(of.slots.size()), collector([this] { collect(); }) {}

  ~Run() {
    workers.close();
    ready.close();
    ring.close();
    collector.join();
  }

  bool cut(Work& work) {
    const bool more = source.next(work.chunk);
    work.pass = source.pass();
    return more;
  }

  Parsed parse(Work& work) {
    Parsed parsed{set.blocks.take(), work.pass};
    set.count_skipped(parse_chunk(work.chunk, work.scratch, *parsed.block), *work.chunk.info);
    return parsed;
  }

  /// The collector: takes blocks in line, and fills slot after slot.
  void collect() try {
    for (int64_t batch = 0;; ++batch) {
      const size_t slot = static_cast<size_t>(batch) % set.slots.size();
      const int64_t rows = gather();
      if (rows == 0 || (rows < set.options.batch && !set.options.keep_last_partial)) break;
      if (!ring.take(slot)) return;
      fill(batch, rows, set.slots[slot]);
      if (!ready.push(static_cast<int>(slot))) return;
      if (rows < set.options.batch) break;
    }
    ready.close();
  } catch (...) {
    ready.fail(std::current_exception());
  }

  /// Collects the ranges of the next batch; returns its rows over all ranks, fewer than a batch only at the end.
  int64_t gather() {
    ranges.clear();
    for (auto& block : used) set.blocks.give(std::move(block));
    used.clear();
    int64_t rows = 0;
    while (rows < set.options.batch) {
      if (!current && !next_block()) break;
      const int64_t take = std::min(current->rows - row, set.options.batch - rows);
      const int64_t begin = std::max(rows, set.rank_begin), end = std::min(rows + take, set.rank_end);
      if (begin < end) ranges.push_back({current.get(), row + begin - rows, end - begin});
      rows += take;
      row += take;
      if (row == current->rows) used.push_back(std::move(current));
    }
    return rows;
  }

  /// False at the end of the set. A pass without one good record would repeat for ever: an error.
  bool next_block() {
    std::optional<Parsed> parsed = workers.next();
    if ((!parsed || parsed->pass != pass) && pass_rows == 0)
      throw Error(Kind::data, cat("'", set.name, "': every record of the set fails its check sum"));
    if (!parsed) return false;
    if (parsed->pass != pass) pass_rows = 0;
    pass = parsed->pass;
    pass_rows += parsed->block->rows;
    current = std::move(parsed->block);
    row = 0;
    return true;
  }

  void fill(int64_t batch, int64_t rows, std::byte* memory) {
    fill_batch(set.layout, memory, ranges);
    StepState& state = *BatchView(set.layout, memory).state;
    state.first_sample = batch * set.options.batch + set.rank_begin;
    state.valid_samples = static_cast<int32_t>(std::clamp<int64_t>(rows - set.rank_begin, 0, set.rank_end - set.rank_begin));
    state.global_samples = static_cast<int32_t>(rows);
    state.samples = static_cast<int32_t>(set.layout.shape.samples);
  }

  Set& set;
  ChunkSource source;
  OrderedWorkers<Work, Parsed> workers;
  BoundedQueue<int> ready;
  SlotRing ring;

  // the collector's
  std::vector<RowRange> ranges;
  std::vector<std::unique_ptr<SampleBlock>> used;  // blocks that `ranges` points into, fully taken
  std::unique_ptr<SampleBlock> current;
  int64_t row = 0, pass = 0, pass_rows = 0;
  std::thread collector;  // last: starts when all else is there
};

Reader::Reader(const DataClause& clause, const std::string& file_list, const BatchLayout& layout, std::vector<std::byte*> slots,
               const ReaderOptions& options, const Log& log) {
  HCTR_EXPECT(options.batch > 0 && options.workers > 0 && options.ranks > 0 && options.rank >= 0 && options.rank < options.ranks &&
                  !slots.empty(),
              "reader of ", options.batch, " samples, ", options.workers, " workers, rank ", options.rank, " of ", options.ranks, ", ",
              slots.size(), " slots");
  set_.reset(new Set{.name = file_list, .files = read_file_list(file_list, log), .demands = norm_demands(clause, options.key_width),
                     .layout = layout, .slots = std::move(slots), .options = options, .log = log, .blocks = {},
                     .warned_mutex = {}, .warned = {}});
  Set& set = *set_;
  set.rank_begin = options.batch * options.rank / options.ranks;
  set.rank_end = options.batch * (options.rank + 1) / options.ranks;
  HCTR_EXPECT(layout.shape.samples >= set.rank_end - set.rank_begin, "a layout of ", layout.shape.samples, " rows for ",
              set.rank_end - set.rank_begin);
  expect_same_shape(layout.shape, set.demands.shape);
  for (const fs::path& file : set.files) set.samples += read_norm_header(file, set.demands).header.number_of_records;
  if (set.samples == 0) throw Error(Kind::data, cat("'", file_list, "': the data set is empty: its files hold no records"));
  run_ = std::make_unique<Run>(set);
}

Reader::~Reader() = default;

std::optional<int> Reader::next() { return run_->ready.pop(); }

void Reader::release(int slot) { run_->ring.release(static_cast<size_t>(slot)); }

void Reader::reset() {
  run_.reset();
  run_ = std::make_unique<Run>(*set_);
}

int64_t Reader::samples() const { return set_->samples; }
int64_t Reader::skipped_records() const { return set_->skipped; }

}  // namespace hctr
