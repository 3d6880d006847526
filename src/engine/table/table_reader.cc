#include "engine/table/table_reader.h"

#include <algorithm>

#include "core/device/arena.h"
#include "core/device/copy_bytes.h"
#include "engine/table/reader_batch.h"
#include "engine/table/table.h"

namespace hctr {
namespace {

/// A reader with its own memory. Keys outside their ranges have no row and are not reported.
class OwnReader : public TableReader {
 public:
  OwnReader(Runtime& runtime, const RowStore& store, const TableSpec& spec, const Admission* shares,
            ops::OutputColumns columns, const ReaderSizes& sizes)
      : store_(store), spec_(spec), shares_(shares), columns_(columns), sizes_(sizes) {
    const size_t rows = memory_.add(TensorSpec(DType::i32, {std::max<int64_t>(1, sizes.key_capacity)}));
    const auto words = static_cast<int64_t>(sizeof(ops::OutOfRangeState) / sizeof(int32_t));
    const size_t state = memory_.add(TensorSpec(DType::i32, {words}));
    memory_.build(runtime.device());
    rows_ = memory_.get(rows).data<int32_t>();
    out_of_range_ = reinterpret_cast<ops::OutOfRangeState*>(memory_.get(state).bytes());
    const ops::OutOfRangeState none;
    copy_bytes(runtime.compute_stream(), out_of_range_, &none, sizeof none);
    runtime.compute_stream().synchronize();
  }

  void lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) override {
    expect_shape("table keys", keys, {sizes_.key_capacity});
    expect_shape("table offsets", offsets, {spec_.slots * sizes_.samples + 1});
    const ops::KeyBatch batch = reader_batch(spec_, sizes_, keys, offsets, columns_);
    if (store_.rows().direct())
      ops::direct_rows(ctx, *store_.rows().direct(), batch, out_of_range_, rows_);
    else
      ops::index_find(ctx, store_.rows().index().view(), batch, rows_);
    if (shares_) shares_->share_row(ctx, batch, rows_);
    ops::pool(ctx, batch, rows_, store_.rows().arrays().data().vectors, spec_.combiner, y);
  }

 private:
  const RowStore& store_;
  const TableSpec& spec_;
  const Admission* shares_;  // null: unknown keys have no row
  ops::OutputColumns columns_;
  ReaderSizes sizes_;
  Arena memory_;
  int32_t* rows_ = nullptr;
  ops::OutOfRangeState* out_of_range_ = nullptr;
};

}  // namespace

std::unique_ptr<TableReader> EmbeddingTable::reader(Runtime& runtime, int64_t samples, int64_t key_capacity) const {
  if (disk_rows())
    throw Error(Kind::config, cat("table '", spec_.name, "': rows on a disk cannot be read by several threads"));
  HCTR_EXPECT(!spec_.batch_slots, "table '", spec_.name, "': a reader needs all slots");
  const bool shares = admission_ && spec_.policy.shares_row();
  return std::make_unique<OwnReader>(runtime, store_, spec_, shares ? admission_.get() : nullptr, columns_of_slots_,
                                     ReaderSizes{samples, key_capacity});
}

}  // namespace hctr
