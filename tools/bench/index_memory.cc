#include "index_memory.h"

#include <numeric>
#include <vector>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/table/row_store.h"

namespace hctr::bench {
namespace {

/// The bytes of the index entries.
int64_t index_bytes(const RowStore& store, StreamRef stream) {
  ops::IndexState state;
  copy_bytes(stream, &state, store.rows().index().view().state, sizeof state);
  stream.synchronize();
  return (static_cast<int64_t>(state.mask) + 1) * static_cast<int64_t>(sizeof(ops::IndexEntry));
}

}  // namespace

void bench_index_memory(Runtime& runtime, int log_rows, Report& report) {
  const int64_t batch = int64_t{1} << (log_rows - 8);
  TableSpec spec;
  spec.name = "memory";
  spec.dim = spec.slots = spec.samples = 1;
  RowStore store(runtime, spec, batch, 1);
  Context ctx(runtime, runtime.compute_stream());
  const Buffer keys(ctx.device(), static_cast<size_t>(batch) * sizeof(int64_t)),
      offsets(ctx.device(), 2 * sizeof(int32_t)), rows(ctx.device(), static_cast<size_t>(batch) * sizeof(int32_t)),
      rows_after(ctx.device(), sizeof(uint32_t));
  const int32_t ends[2] = {0, static_cast<int32_t>(batch)};
  copy_bytes(ctx.stream(), offsets.data(), ends, sizeof ends);
  ops::KeyBatch all{.keys = reinterpret_cast<const int64_t*>(keys.data()),
                    .offsets = reinterpret_cast<const int32_t*>(offsets.data()),
                    .slots = 1,
                    .samples = 1,
                    .key_capacity = batch,
                    .columns = 1};
  auto* after = reinterpret_cast<uint32_t*>(rows_after.data());
  std::vector<int64_t> numbers(static_cast<size_t>(batch));
  for (int64_t known = 0;; known += batch) {
    const int64_t bytes = index_bytes(store, ctx.stream());
    store.reserve_rows();
    const int64_t grown = index_bytes(store, ctx.stream());
    if (known >> log_rows && grown > bytes) {
      const auto per_key = [&](int64_t of) { return static_cast<double>(of) / static_cast<double>(known); };
      const std::string where = cat(known, " rows");
      report.add("index, about to grow", where, per_key(bytes), "bytes a key");
      report.add("index, just grown", where, per_key(grown), "bytes a key");
      report.add("key of a row", "a row for each key", sizeof(int64_t), "bytes a key");
      report.add("key of a row", "for each slot and key", sizeof(int64_t) + sizeof(int32_t), "bytes a key");
      report.add("last step, occurrences", "each, where noted", sizeof(uint32_t), "bytes a key");
      return;
    }
    std::iota(numbers.begin(), numbers.end(), known);
    copy_bytes(ctx.stream(), keys.data(), numbers.data(), keys.bytes());
    ops::index_insert(ctx, store.rows().index().view(), all, reinterpret_cast<int32_t*>(rows.data()));
    ops::index_close_batch(ctx, store.rows().index().view(), after, store.rows().index().host_word());
    ops::index_finish_step(ctx, store.rows().index().view(), after);
    ctx.stream().synchronize();
  }
}

}  // namespace hctr::bench
