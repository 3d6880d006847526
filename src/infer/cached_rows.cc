#include "infer/cached_rows.h"

#include <algorithm>
#include <numeric>

#include "core/device/copy_bytes.h"
#include "engine/spec/slot_vector_columns.h"
#include "engine/table/reader_batch.h"
#include "ops/common/copy.h"
#include "ops/embedding/embedding_pool.h"
#include "store/bound_version.h"

namespace hctr {
namespace {

Buffer copy_of(Device device, StreamRef stream, const std::vector<int32_t>& numbers) {
  Buffer there(device, std::max<size_t>(1, numbers.size()) * sizeof(int32_t));
  copy_bytes(stream, there.data(), numbers.data(), numbers.size() * sizeof(int32_t));
  return there;
}

}  // namespace

/// Pools the rows that look_up() has read. Uses the same operator as for the rows of a model's own tables.
class CachedRows::Reader : public TableReader {
 public:
  Reader(Runtime& runtime, const TableSpec& spec, int64_t samples, int64_t capacity, float* rows)
      : spec_(spec), sizes_{samples, capacity}, rows_(rows) {
    const Device device = runtime.device();
    const StreamRef stream = runtime.compute_stream();
    std::vector<int32_t> numbers(static_cast<size_t>(std::max<int64_t>(1, capacity)));
    std::iota(numbers.begin(), numbers.end(), 1);
    row_of_ = copy_of(device, stream, numbers);
    if (spec.combiner == ops::Combiner::none) {
      const SlotVectorColumns columns = slot_vector_columns(spec);
      first_columns_ = copy_of(device, stream, columns.of_slot);
      slots_of_columns_ = copy_of(device, stream, columns.slots);
    }
    if (spec.storage != DType::f32)
      stored_ = Buffer(device, static_cast<size_t>((capacity + 1) * spec.dim) * size_of(spec.storage));
    stream.synchronize();
  }

  void lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) override {
    const ops::KeyBatch batch = reader_batch(spec_, sizes_, keys, offsets,
                                             {reinterpret_cast<const int32_t*>(first_columns_.data()),
                                              reinterpret_cast<const int32_t*>(slots_of_columns_.data())});
    ops::RowMemory table{rows_, DType::f32};
    if (spec_.storage != DType::f32) {
      table = {stored_.data(), spec_.storage};
      ops::copy(ctx, Tensor(rows_, TensorSpec(DType::f32, {sizes_.key_capacity + 1, spec_.dim}), ctx.device()),
                Tensor(stored_.data(), TensorSpec(spec_.storage, {sizes_.key_capacity + 1, spec_.dim}), ctx.device()));
    }
    ops::pool(ctx, batch, reinterpret_cast<const int32_t*>(row_of_.data()), table, spec_.combiner, y);
  }

 private:
  const TableSpec& spec_;
  ReaderSizes sizes_;
  float* rows_;
  Buffer row_of_;                            // [capacity] row number of each key: 1 + p for key p
  Buffer first_columns_, slots_of_columns_;  // used for unpooled vectors only
  Buffer stored_;                            // the rows converted to the model's storage type; unused if it is f32
};

CachedRows::CachedRows(const StoreTables& tables, Device device) : tables_(tables), device_(device) {}

std::unique_ptr<TableReader> CachedRows::reader(Runtime& runtime, size_t embedding, int64_t samples, int64_t capacity) {
  const TableSpec& spec = tables_.spec(embedding);
  HCTR_EXPECT(embedding == rows_.size(), "embedding ", embedding, " after ", rows_.size());
  rows_.emplace_back(device_, static_cast<size_t>((capacity + 1) * spec.dim) * sizeof(float));
  return std::make_unique<Reader>(runtime, spec, samples, capacity, reinterpret_cast<float*>(rows_.back().data()));
}

void CachedRows::look_up(const BatchRing& ring, const std::vector<size_t>& inputs, StreamRef stream) {
  const BatchView batch = ring.on_host(0);
  std::vector<StoreCache::Part> parts;
  for (size_t e = 0; e < rows_.size(); ++e) {
    const TableSpec& spec = tables_.spec(e);
    const BatchView::Table& table = batch.tables[inputs[e]];
    const int64_t* const keys = ring.keys(0, inputs[e]).data<const int64_t>();
    float* const rows = reinterpret_cast<float*>(rows_[e].data());
    const auto add = [&](int32_t slot, int64_t begin, int64_t end) {
      if (begin == end) return;
      parts.push_back({.table = tables_.number(e),
                       .keys = {keys + begin, static_cast<size_t>(end - begin)},
                       .vectors = rows + (1 + begin) * spec.dim,
                       .slot = slot,
                       .keys_on_gpu = true});
    };
    const int64_t samples = ring.samples();
    if (spec.identity_by_slot)
      for (int64_t s = 0; s < spec.slots; ++s)
        add(static_cast<int32_t>(s), table.offset(s * samples), table.offset((s + 1) * samples));
    else
      add(0, 0, table.offset(spec.slots * samples));
  }
  // In a model, a key without a row contributes nothing, whatever the default value of the store's table is.
  if (!parts.empty()) tables_.cache()->lookup(parts, stream.handle, 0.0f);
}

}  // namespace hctr
