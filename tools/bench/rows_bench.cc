#include "rows_bench.h"

#include <set>

#include "core/base/random.h"
#include "core/device/arena.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/embedding_update.h"
#include "timing.h"

namespace hctr::bench {
namespace {

// Enough batches that the rows of a batch have left the caches when the batch is used again.
constexpr int kBatches = 4;

/// A table, and batches with one uniformly drawn key per slot. All keys have rows.
class StoredTable {
 public:
  StoredTable(Context& ctx, const RowsCase& wanted)
      : ctx_(ctx),
        wanted_(wanted),
        keys_(wanted.samples * wanted.slots),
        table_rows_(int64_t{1} << wanted.log_rows),
        vectors_(ctx.device(), table_bytes()),
        row_keys_(ctx.device(), static_cast<size_t>(table_rows_) * sizeof(int64_t)),
        offsets_(ctx.device(), static_cast<size_t>(keys_ + 1) * sizeof(int32_t)),
        piece_sums_(ctx.device(), static_cast<size_t>(ops::RowGroups::most_pieces(keys_) * wanted.dim) * sizeof(float)),
        scratch_(ctx.device(), ops::group_scratch_bytes(ctx.device(), keys_)),
        counts_(ctx.device(), sizeof(ops::GroupCounts)),
        long_runs_(ctx.device(), static_cast<size_t>(ops::RowGroups::most_long_runs(keys_)) * sizeof(ops::LongRun)),
        pieces_(ctx.device(), static_cast<size_t>(ops::RowGroups::most_pieces(keys_)) * sizeof(ops::Piece)) {
    std::vector<int32_t> offsets(static_cast<size_t>(keys_ + 1));
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int32_t>(i);
    copy_bytes(ctx.stream(), offsets_.data(), offsets.data(), offsets_.bytes());
    for (int b = 0; b < kBatches; ++b) {
      std::vector<int32_t> rows(static_cast<size_t>(keys_));
      for (size_t i = 0; i < rows.size(); ++i)
        rows[i] = static_cast<int32_t>(1 + mix64(i * kBatches + static_cast<size_t>(b)) %
                                               static_cast<uint64_t>(table_rows_ - 1));
      distinct_ += static_cast<double>(std::set<int32_t>(rows.begin(), rows.end()).size()) / kBatches;
      rows_.emplace_back(ctx.device(), rows.size() * sizeof(int32_t));
      copy_bytes(ctx.stream(), rows_.back().data(), rows.data(), rows_.back().bytes());
      for (std::vector<Buffer>* column : {&sorted_rows_, &sorted_bags_, &run_begin_})
        column->emplace_back(ctx.device(), rows.size() * sizeof(int32_t));
      ctx.stream().synchronize();
    }
  }

  size_t table_bytes() const { return static_cast<size_t>(table_rows_ * wanted_.dim) * size_of(wanted_.storage); }
  int64_t keys() const { return keys_; }
  double distinct_rows() const { return distinct_; }
  TensorSpec y(DType dtype) const { return TensorSpec(dtype, {wanted_.samples, wanted_.slots, wanted_.dim}); }

  void pool(int b, Tensor y) { ops::pool(ctx_, batch(), rows(rows_, b), stored(vectors_), ops::Combiner::sum, y); }
  void group(int b) { ops::group_by_row(ctx_, batch(), rows(rows_, b), wanted_.log_rows, groups(b), scratch_.data()); }
  void update(int b, const ops::Optimizer& optimizer, Tensor dy) {
    ops::RowData data;
    data.dim = data.state_dim = wanted_.dim;
    data.vectors = stored(vectors_);
    for (size_t s = 0; s < states_.size(); ++s) data.states[s] = {states_[s].data(), DType::f32};
    data.identity.keys = reinterpret_cast<const int64_t*>(row_keys_.data());
    ops::sum_long_runs(ctx_, batch(), groups(b), ops::Combiner::sum, dy, reinterpret_cast<float*>(piece_sums_.data()));
    ops::update_rows(ctx_, optimizer, batch(), groups(b), ops::Combiner::sum, dy,
                     reinterpret_cast<float*>(piece_sums_.data()), data);
  }
  void make_states(int count) {
    states_.clear();
    for (int s = 0; s < count; ++s)
      states_.emplace_back(ctx_.device(), static_cast<size_t>(table_rows_ * wanted_.dim) * sizeof(float));
  }

 private:
  ops::RowMemory stored(const Buffer& buffer) const { return {buffer.data(), wanted_.storage}; }
  ops::KeyBatch batch() const {
    return {nullptr,      reinterpret_cast<const int32_t*>(offsets_.data()), wanted_.slots, wanted_.samples, keys_,
            wanted_.slots};
  }
  static int32_t* rows(const std::vector<Buffer>& column, int b) {
    return reinterpret_cast<int32_t*>(column[static_cast<size_t>(b)].data());
  }
  ops::RowGroups groups(int b) const {
    return {rows(sorted_rows_, b),
            rows(sorted_bags_, b),
            rows(run_begin_, b),
            reinterpret_cast<ops::LongRun*>(long_runs_.data()),
            reinterpret_cast<ops::Piece*>(pieces_.data()),
            reinterpret_cast<ops::GroupCounts*>(counts_.data())};
  }

  Context& ctx_;
  RowsCase wanted_;
  int64_t keys_, table_rows_;
  double distinct_ = 0;
  Buffer vectors_, row_keys_, offsets_, piece_sums_, scratch_, counts_, long_runs_, pieces_;
  std::vector<Buffer> rows_, sorted_rows_, sorted_bags_, run_begin_, states_;
};

}  // namespace

void bench_rows(Context& without_state, const RowsCase& wanted, const Ceilings& ceilings, Report& report) {
  const Buffer state(without_state.device(), sizeof(StepState));
  const StepState step{.step = 10, .updates = 10, .learning_rate = 1e-3f, .loss_scale = 1};
  copy_bytes(without_state.stream(), state.data(), &step, sizeof step);
  Context ctx(without_state.runtime(), without_state.stream(), reinterpret_cast<const StepState*>(state.data()));
  StoredTable table(ctx, wanted);
  const std::string where = cat("2^", wanted.log_rows, " rows, dim ", wanted.dim);
  const auto keys = static_cast<double>(table.keys());
  // The rate of random rows depends on the row size in bytes. A two-byte row of dim n has the size of an f32 row of dim
  // n / 2.
  const double gather = ceilings.gather_rows.at(wanted.dim);
  const double gather_stored = ceilings.gather_rows.at(wanted.storage == DType::f32 ? wanted.dim : wanted.dim / 2);
  for (const DType dtype : {DType::f32, DType::f16}) {
    Arena y;
    y.add(table.y(dtype));
    y.build(ctx.device());
    const double seconds = seconds_each(ctx, 2, 4 * kBatches, [&](int i) { table.pool(i % kBatches, y.get(0)); });
    report.add(cat("lookup + sum, ", name_of(wanted.storage), " rows to ", name_of(dtype)), where, keys / seconds / 1e9,
               "G rows/s", gather_stored / 1e9);
  }
  const double sort = seconds_in_a_row(ctx, kBatches, 5, [&](int i) { table.group(i); });
  report.add("sort by row", where, keys / sort / 1e9, "G keys/s");

  using Kind = ops::Optimizer::Kind;
  for (const auto& [name, kind] :
       {std::pair("SGD", Kind::sgd), std::pair("AdaGrad", Kind::adagrad), std::pair("Adam", Kind::adam)}) {
    ops::Optimizer optimizer;
    optimizer.kind = kind;
    table.make_states(optimizer.states());
    for (const DType dtype : {DType::f32, DType::f16}) {
      Arena dy;
      dy.add(table.y(dtype));
      dy.build(ctx.device());
      table.group(0);
      const double seconds = seconds_each(
          ctx, 2, 4 * kBatches, [&](int i) { table.update(i % kBatches, optimizer, dy.get(0)); },
          [&](int i) { table.group(i % kBatches); });
      // The lower bound: gradients are read once at the rate of a copy; touched rows and their states are read and
      // written once at the rate of random rows.
      const double floor = static_cast<double>(dy.bytes()) / ceilings.copy_bytes +
                           2 * table.distinct_rows() * (1 / gather_stored + optimizer.states() / gather);
      report.add(cat("backward + ", name, ", ", name_of(dtype), " gradients"), where, seconds * 1e3, "ms");
      report.add("  lower bound / time", where, 100 * floor / seconds, "%");
      report.add("  lower bound / time with the sort", where, 100 * floor / (seconds + sort), "%");
    }
  }
}

}  // namespace hctr::bench
