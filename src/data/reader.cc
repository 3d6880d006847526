#include "data/reader.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/queue.h"
#include "data/row_stream.h"
#include "data/slot_ring.h"

namespace hctr {
namespace {

void expect_same_shape(const BatchShape& batch, const RecordShape& record) {
  bool same = batch.label_dim == record.label_dim && batch.dense_dim == record.dense_dim && batch.tables.size() == record.inputs.size();
  for (size_t i = 0; same && i < batch.tables.size(); ++i)
    same = batch.tables[i].slots == record.inputs[i].slots &&
           (batch.tables[i].keep > 0 || batch.tables[i].key_capacity >= batch.samples * record.inputs[i].max_keys);
  HCTR_EXPECT(same, "the layout of a batch was made for another Data layer");
}

/// A filled slot, and where the reader stands behind it.
struct Ready {
  int slot;
  ReaderPosition behind;
  int64_t skipped;
};

}  // namespace

struct Reader::Set {
  std::unique_ptr<SampleSet> samples;
  BatchLayout layout;
  std::vector<std::byte*> slots;
  ReaderOptions options;
  int64_t rank_begin = 0, rank_end = 0;  // this rank's rows of a batch
  Recycler<SampleBlock> blocks;
  BadRecordCare care;

  Passage passage() const { return {.repeat = options.repeat, .shuffle_files = options.shuffle > 0, .seed = options.seed}; }
};

struct Reader::Run {
  Run(Set& of, const ReaderPosition& start)
      : set(of), from(start), blocks(*of.samples, of.passage(), start, of.options.workers, of.blocks, of.care), ready(of.slots.size()),
        ring(of.slots.size()), collector([this] { collect(); }) {}

  ~Run() {
    blocks.close();
    ready.close();
    ring.close();
    collector.join();
  }

  /// The collector: takes rows in their order, and fills slot after slot.
  void collect() try {
    const auto stream = set.options.shuffle > 0 ? shuffled(blocks, from, set.options.shuffle, set.options.seed) : in_order(blocks, from);
    Rows all;
    int64_t samples = from.samples;
    for (size_t slot = 0;; slot = (slot + 1) % set.slots.size()) {
      all.clear();
      const int64_t rows = stream->take(set.options.batch, all);
      if (rows == 0 || (rows < set.options.batch && !set.options.keep_last_partial)) break;
      if (!ring.take(slot)) return;
      fill(all.ranges, rows, samples, set.slots[slot]);
      samples += rows;
      ReaderPosition behind = stream->position();
      behind.samples = samples;
      if (!ready.push({static_cast<int>(slot), behind, stream->bad_records()})) return;
      if (rows < set.options.batch) break;
    }
    ready.close();
  } catch (...) {
    ready.fail(std::current_exception());
  }

  /// This rank's part of `all`, which are `rows` rows.
  void fill(const std::vector<RowRange>& all, int64_t rows, int64_t first_sample, std::byte* memory) {
    mine.clear();
    int64_t at = 0;
    for (const RowRange& range : all) {
      const int64_t begin = std::max(at, set.rank_begin), end = std::min(at + range.count, set.rank_end);
      if (begin < end) mine.push_back({range.block, range.first + begin - at, end - begin});
      at += range.count;
    }
    fill_batch(set.layout, memory, mine, filling);
    StepState& state = *BatchView(set.layout, memory).state;
    state.first_sample = first_sample + set.rank_begin;
    state.valid_samples = static_cast<int32_t>(std::clamp<int64_t>(rows - set.rank_begin, 0, set.rank_end - set.rank_begin));
    state.global_samples = static_cast<int32_t>(rows);
    state.samples = static_cast<int32_t>(set.layout.shape.samples);
  }

  Set& set;
  ReaderPosition from;
  BlockStream blocks;
  BoundedQueue<Ready> ready;
  SlotRing ring;
  std::vector<RowRange> mine;
  ThreadPool filling{std::max(1, set.options.workers / 4)};  // laying rows out takes about a third of the time of parsing them
  std::thread collector;  // last: starts when all else is there
};

Reader::Reader(const DataClause& clause, const Source& source, const BatchLayout& layout, std::vector<std::byte*> slots,
               const ReaderOptions& options, const Log& log) {
  HCTR_EXPECT(options.batch > 0 && options.workers > 0 && options.ranks > 0 && options.rank >= 0 && options.rank < options.ranks &&
                  !slots.empty(),
              "reader of ", options.batch, " samples, ", options.workers, " workers, rank ", options.rank, " of ", options.ranks, ", ",
              slots.size(), " slots");
  set_.reset(new Set{.samples = format_type(clause.format).open(clause, source, options.key_width, log), .layout = layout, .slots = std::move(slots),
                     .options = options, .blocks = {}, .care = {.set = source.path, .most = clause.max_bad_records, .log = log}});
  Set& set = *set_;
  set.rank_begin = options.batch * options.rank / options.ranks;
  set.rank_end = options.batch * (options.rank + 1) / options.ranks;
  HCTR_EXPECT(layout.shape.samples >= set.rank_end - set.rank_begin, "a layout of ", layout.shape.samples, " rows for ",
              set.rank_end - set.rank_begin);
  expect_same_shape(layout.shape, record_shape(clause));
  reset(options.from);
}

Reader::~Reader() = default;

std::optional<int> Reader::next() {
  const std::optional<Ready> ready = run_->ready.pop();
  if (!ready) return std::nullopt;
  position_ = ready->behind;
  skipped_ = ready->skipped;
  return ready->slot;
}

void Reader::release(int slot) { run_->ring.release(static_cast<size_t>(slot)); }

void Reader::reset(const ReaderPosition& from) {
  run_.reset();
  position_ = from;
  skipped_ = from.bad_records;
  run_ = std::make_unique<Run>(*set_, from);
}

ReaderPosition Reader::next_pass() const { return {.pass = position_.pass + 1, .bad_records = skipped_}; }

int64_t Reader::samples() const { return set_->samples->samples(); }

}  // namespace hctr
