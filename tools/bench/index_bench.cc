#include "index_bench.h"

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/embedding/direct_index.h"
#include "ops/embedding/hash_index.h"
#include "prepare/generate/power_law.h"
#include "timing.h"

namespace hctr::bench {
namespace {

/// The n-th key. All keys are distinct and look random.
int64_t key_of(int64_t n) { return static_cast<int64_t>(mix64(static_cast<uint64_t>(n) * 2 + 1)); }

/// A table with rows 1 to n for keys 0 to n - 1, and batches of keys to look up.
class IndexedTable {
 public:
  IndexedTable(Context& ctx, const IndexCase& wanted)
      : ctx_(ctx),
        table_entries_(int64_t{1} << wanted.log_entries),
        batch_(int64_t{1} << wanted.log_batch),
        most_rows_(std::min(table_entries_, static_cast<int64_t>(static_cast<double>(table_entries_) * wanted.load) +
                                                (batch_ <= 1 << 18 ? 66 : 2) * batch_)),
        entries_(ctx.device(), static_cast<size_t>(table_entries_) * sizeof(ops::IndexEntry)),
        saved_(ctx.device(), entries_.bytes()),
        row_keys_(ctx.device(), static_cast<size_t>(most_rows_ + 1) * sizeof(int64_t)),
        state_(ctx.device(), sizeof(ops::IndexState)),
        offsets_(ctx.device(), 2 * sizeof(int32_t)),
        rows_(ctx.device(), static_cast<size_t>(batch_) * sizeof(int32_t)),
        span_(ctx.device(), sizeof(ops::KeySpan)),
        out_of_range_(ctx.device(), sizeof(ops::OutOfRangeState)) {
    const ops::KeySpan all{0, most_rows_, 0};
    copy_bytes(ctx_.stream(), span_.data(), &all, sizeof all);
    index_.entries = reinterpret_cast<ops::IndexEntry*>(entries_.data());
    index_.state = reinterpret_cast<ops::IndexState*>(state_.data());
    index_.row_keys = reinterpret_cast<int64_t*>(row_keys_.data());
    const int32_t offsets[2] = {0, static_cast<int32_t>(batch_)};
    copy_bytes(ctx_.stream(), offsets_.data(), offsets, sizeof offsets);
    for (int b = 0; b < batches(); ++b)
      batches_.emplace_back(ctx.device(), static_cast<size_t>(batch_) * sizeof(int64_t));
    reset();
  }

  /// Short batches are timed as a sequence of batches, each used once.
  bool is_short() const { return batch_ <= 1 << 18; }
  int batches() const { return is_short() ? 64 : 4; }
  int64_t batch() const { return batch_; }
  int64_t entries() const { return table_entries_; }

  void reset() {
    zero_bytes(ctx_.stream(), entries_.data(), entries_.bytes());
    const ops::IndexState empty{.mask = static_cast<uint64_t>(table_entries_ - 1),
                                .row_capacity = static_cast<uint32_t>(most_rows_),
                                .rows = 0,
                                .ready = 0,
                                .finished = 0,
                                .batches = 0};
    set_state(empty);
  }

  /// Fills batch b with the keys key_of(number(0)), key_of(number(1)) and so on.
  template <class Number>
  void fill(int b, const Number& number) {
    fill_with(b, [&](int64_t i) { return key_of(number(i)); });
  }
  /// Fills batch b with the keys key(0), key(1) and so on.
  template <class Key>
  void fill_with(int b, const Key& key) {
    std::vector<int64_t> keys(static_cast<size_t>(batch_));
    ctx_.threads().parallel_for(batch_, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) keys[static_cast<size_t>(i)] = key(i);
    });
    copy_bytes(ctx_.stream(), batches_[static_cast<size_t>(b)].data(), keys.data(),
               batches_[static_cast<size_t>(b)].bytes());
    ctx_.stream().synchronize();
  }

  void find(int b) { ops::index_find(ctx_, index_, batch(b), rows()); }
  /// Finds the rows of batch b by arithmetic, for keys below the row capacity.
  void find_directly(int b) {
    ops::direct_rows(ctx_, {reinterpret_cast<const ops::KeySpan*>(span_.data()), 1, false}, batch(b), out_of_range(),
                     rows());
  }
  void insert(int b) { ops::index_insert(ctx_, index_, batch(b), rows()); }

  /// Inserts keys 0 to n - 1.
  void hold(int64_t n) {
    reset();
    for (int64_t first = 0; first < n; first += batch_) {
      fill(0, [&](int64_t i) { return std::min(first + i, n - 1); });
      insert(0);
      ctx_.stream().synchronize();
    }
    ops::IndexState now = state();
    HCTR_EXPECT(now.rows == n, "a table of ", now.rows, " rows after ", n, " keys");
    now.finished = now.ready = now.rows;
    set_state(now);
    kept_ = now;
    copy_bytes(ctx_.stream(), saved_.data(), entries_.data(), entries_.bytes());
  }
  /// Restores the table to its state after hold().
  void restore() {
    copy_bytes(ctx_.stream(), entries_.data(), saved_.data(), entries_.bytes());
    set_state(kept_);
  }
  ops::IndexState state() {
    ops::IndexState state;
    copy_bytes(ctx_.stream(), &state, state_.data(), sizeof state);
    ctx_.stream().synchronize();
    return state;
  }
  /// Checks that every key of batch b has a row, and that keys inserted by hold() have the rows that hold() gave them.
  void check(int b) {
    std::vector<int32_t> rows(static_cast<size_t>(batch_));
    std::vector<int64_t> keys(rows.size()), row_keys(static_cast<size_t>(most_rows_ + 1));
    copy_bytes(ctx_.stream(), rows.data(), rows_.data(), rows_.bytes());
    copy_bytes(ctx_.stream(), keys.data(), batches_[static_cast<size_t>(b)].data(),
               batches_[static_cast<size_t>(b)].bytes());
    copy_bytes(ctx_.stream(), row_keys.data(), row_keys_.data(), row_keys_.bytes());
    ctx_.stream().synchronize();
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i] <= 0 || row_keys[static_cast<size_t>(rows[i])] != keys[i])
        throw Error(Kind::bug, cat("key ", keys[i], " of a batch has row ", rows[i]));
  }

 private:
  ops::KeyBatch batch(int b) const {
    return {reinterpret_cast<const int64_t*>(batches_[static_cast<size_t>(b)].data()),
            reinterpret_cast<const int32_t*>(offsets_.data()),
            1,
            1,
            batch_,
            1};
  }
  ops::OutOfRangeState* out_of_range() const { return reinterpret_cast<ops::OutOfRangeState*>(out_of_range_.data()); }
  int32_t* rows() const { return reinterpret_cast<int32_t*>(rows_.data()); }
  void set_state(const ops::IndexState& state) {
    copy_bytes(ctx_.stream(), state_.data(), &state, sizeof state);
    ctx_.stream().synchronize();
  }

  Context& ctx_;
  int64_t table_entries_, batch_, most_rows_;
  Buffer entries_, saved_, row_keys_, state_, offsets_, rows_, span_, out_of_range_;
  std::vector<Buffer> batches_;
  ops::HashIndex index_;
  ops::IndexState kept_{};
};

int64_t any_of(int64_t n, int64_t i, int salt) {
  return static_cast<int64_t>(mix64(static_cast<uint64_t>(i) ^ static_cast<uint64_t>(salt) << 40) %
                              static_cast<uint64_t>(n));
}

}  // namespace

void bench_index(Context& ctx, const IndexCase& wanted, const Ceilings& ceilings, Report& report) {
  IndexedTable table(ctx, wanted);
  const int batches = table.batches();
  const std::string where = cat("2^", wanted.log_entries, " load ", wanted.load, " batch 2^", wanted.log_batch);
  const auto held = static_cast<int64_t>(static_cast<double>(table.entries()) * wanted.load);
  const auto keys = static_cast<double>(table.batch());
  const double probes = ceilings.gather_rows.contains(4) ? ceilings.gather_rows.at(4) / 1e9 : 0;
  const auto report_rate = [&](const std::string& what, double seconds) {
    if (table.is_short())
      report.add(what, where, seconds * 1e6, "us");
    else
      report.add(what, where, keys / seconds / 1e9, "G keys/s", probes);
  };
  const auto timed = [&](const std::function<void(int)>& body, bool changes) {
    const std::function<void(int)> before = changes ? [&](int) { table.restore(); } : std::function<void(int)>();
    if (table.is_short()) return seconds_in_a_row(ctx, batches, 9, body, before);
    return seconds_each(ctx, 1, 3 * batches, [&](int i) { body(i % batches); }, before);
  };

  table.hold(held);
  for (int b = 0; b < batches; ++b) table.fill(b, [&](int64_t i) { return any_of(held, i, b); });
  table.find(0);
  table.check(0);
  report_rate("find, all keys exist", timed([&](int b) { table.find(b); }, false));
  report_rate("find or insert, all keys exist", timed([&](int b) { table.insert(b); }, false));

  for (int b = 0; b < batches; ++b) table.fill_with(b, [&](int64_t i) { return any_of(held, i, b); });
  report_rate("direct, no index", timed([&](int b) { table.find_directly(b); }, false));

  const PowerLaw law(held, 1.05);
  for (int b = 0; b < batches; ++b)
    table.fill(b, [&](int64_t i) {
      return law.rank(static_cast<double>(mix64(static_cast<uint64_t>(i) * 4 + static_cast<uint64_t>(b)) >> 11) *
                      0x1p-53);
    });
  report_rate("find or insert, power law 1.05", timed([&](int b) { table.insert(b); }, false));

  int64_t next = held;
  for (int b = 0; b < batches; ++b) {
    const int64_t first = next;
    table.fill(b, [&](int64_t i) { return i % 1000 == 0 ? first + i / 1000 : any_of(held, i, b + 8); });
    next += table.batch() / 1000 + 1;
  }
  report_rate("find or insert, 0.1 % new", timed([&](int b) { table.insert(b); }, true));
  table.check(table.is_short() ? batches - 1 : 0);

  // Half of the keys are new, so the load rises while the batch runs, and reaches the stated load in the middle of the
  // batch.
  const int64_t in_a_row = table.is_short() ? batches * table.batch() : table.batch(), before = held - in_a_row / 4;
  table.hold(before);
  // If the batches are timed as a sequence, their new keys must differ, because a key is new only once.
  const int64_t fresh = table.is_short() ? table.batch() : 1;
  for (int b = 0; b < batches; ++b)
    table.fill(b, [&](int64_t i) {
      return mix64(static_cast<uint64_t>(i)) % 2 == 0 ? before + i + b * fresh : any_of(before, i, b + 16);
    });
  report_rate("find or insert, 50 % new", timed([&](int b) { table.insert(b); }, true));
  table.check(table.is_short() ? batches - 1 : 0);
}

}  // namespace hctr::bench
