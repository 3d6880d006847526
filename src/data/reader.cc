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

/// The rows of a batch, found but not laid out yet.
struct Gathered {
  Rows all;
  int64_t rows;  ///< of all ranks
  ReaderPosition behind;
  int64_t skipped;
};

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

  /// What is parsed where not all is. When shuffling, rows of every rank are everywhere.
  std::optional<Share> share() const {
    if (options.ranks == 1 || options.shuffle > 0 || !samples->can_be_shared()) return {};
    return Share{.batch = options.batch, .begin = rank_begin, .end = rank_end};
  }
  Passage passage() const { return {.repeat = options.repeat, .shuffle_files = options.shuffle > 0, .seed = options.seed}; }
};

struct Reader::Run {
  Run(Set& of, const ReaderPosition& start)
      : set(of), from(start), blocks(*of.samples, of.passage(), start, of.options.workers, of.blocks, of.care, of.share()), ready(of.slots.size()),
        ring(of.slots.size()), collector([this] { collect(); }), filler([this] { fill_slots(); }) {}

  ~Run() {
    blocks.close();
    gathered.close();
    ready.close();
    ring.close();
    collector.join();
    filler.join();
  }

  /// The collector: takes rows in their order, and finds out which batch they belong to.
  void collect() try {
    const auto stream = set.options.shuffle > 0 ? shuffled(blocks, from, set.options.shuffle, set.options.seed) : in_order(blocks, from);
    int64_t samples = from.samples;
    for (;;) {
      Gathered batch{};
      batch.rows = stream->take(set.options.batch, batch.all);
      if (batch.rows == 0 || (batch.rows < set.options.batch && !set.options.keep_last_partial)) break;
      if (!blocks.share()) batch.all.keep_slice(set.rank_begin, set.rank_end);
      samples += batch.rows;
      batch.behind = stream->position();
      batch.behind.samples = samples;
      batch.skipped = stream->bad_records();
      const bool last = batch.rows < set.options.batch;
      if (!gathered.push(std::move(batch))) return;
      if (last) break;
    }
    gathered.close();
  } catch (...) {
    gathered.fail(std::current_exception());
  }

  /// The filler: lays batch after batch out in slot after slot, while the next one is gathered.
  void fill_slots() try {
    for (size_t slot = 0;; slot = (slot + 1) % set.slots.size()) {
      const std::optional<Gathered> batch = gathered.pop();
      if (!batch) break;
      if (!ring.take(slot)) return;
      fill(batch->all.ranges, batch->rows, batch->behind.samples - batch->rows, set.slots[slot]);
      if (!ready.push({static_cast<int>(slot), batch->behind, batch->skipped})) return;
    }
    ready.close();
  } catch (...) {
    ready.fail(std::current_exception());
  }

  /// `mine`: this rank's part of `rows` rows.
  void fill(const std::vector<RowRange>& mine, int64_t rows, int64_t first_sample, std::byte* memory) {
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
  BoundedQueue<Gathered> gathered{1};
  BoundedQueue<Ready> ready;
  SlotRing ring;
  ThreadPool filling{std::max(1, set.options.workers / 2)};  // laying rows out takes about half of the time of parsing them
  std::thread collector, filler;  // last: start when all else is there
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

int64_t Reader::parsed_rows() const { return run_->blocks.parsed_rows(); }

ReaderPosition Reader::next_pass() const { return {.pass = position_.pass + 1, .bad_records = skipped_}; }

int64_t Reader::samples() const { return set_->samples->samples(); }

}  // namespace hctr
