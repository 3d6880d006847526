// Row stores with a direct index: every row exists from the start, and keys outside their ranges are reported.
#include <atomic>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/spec/setting_words.h"
#include "engine/table/row_store.h"

namespace hctr {
namespace {

std::string gib(int64_t bytes) {
  const int64_t tenths = (bytes * 10 + (1 << 29)) / (1 << 30);
  return cat(tenths / 10, ".", tenths % 10, " GiB");
}

}  // namespace

int64_t RowStore::all_rows(const TableSpec& spec) const {
  const int64_t rows = keys_.rows(), numbers = number_bytes_of_row(spec), bytes_per_row = bytes_of_row(spec),
                bytes = rows * bytes_per_row, free = free_memory(runtime_.device());
  const bool one_of_several = spec.ranks > 1;
  if (bytes <= free) return rows;
  const bool two_memories = runtime_.device().is_cuda() && budget_.has_host();
  const int64_t moving = rows_move_ ? bytes_of_moving_row(true) : 0;
  if (two_memories && rows * (bytes_per_row - numbers + moving) < free &&
      rows * numbers <= budget_.host_room() + std::min(budget_.device_room(), free))
    return rows;
  const SettingWords& words = setting_words(budget_.limits());
  throw Error(Kind::device, cat(RowArrays::label_of(spec), ": the ", rows, " rows of ", words.row_numbers, " take ",
                                bytes, " bytes (", gib(bytes), ") and ", free, " (", gib(free), ") are free on ",
                                to_string(runtime_.device()),
                                two_memories ? cat(", ", budget_.host_room(), " (", gib(budget_.host_room()),
                                                   ") of host memory may be used (", budget_.limits().host_setting, ")")
                                : runtime_.device().is_cuda() ? cat(" (", words.host, ")")
                                                              : std::string(),
                                "; ", words.smaller_rows, one_of_several ? words.spread : "", "or ", words.hash,
                                ", which takes memory for the keys that occur alone"));
}

void RowStore::allocate_all_rows() {
  const int64_t rows = keys_.rows();
  const StreamRef stream = runtime_.compute_stream();
  const ops::OutOfRangeState none[2] = {};
  copy_bytes(stream, spans_.data(), keys_.spans.data(), spans_.bytes());
  copy_bytes(stream, out_of_range_state_.data(), none, sizeof none);
  arrays_.set_direct(
      {reinterpret_cast<const ops::KeySpan*>(spans_.data()), static_cast<int64_t>(keys_.spans.size()), keys_.by_slot});
  in_context([&] { return cat("reserving memory for all ", rows, " rows of ", arrays_.label()); },
             [&] { grow_rows(rows); });
  ops::IndexState state{.mask = 0,
                        .row_capacity = static_cast<uint32_t>(rows),
                        .rows = static_cast<uint32_t>(rows),
                        .ready = 0,
                        .finished = 0,
                        .batches = 0,
                        .marks = 0};
  index_.put_state(state);
  Context ctx(runtime_, stream);
  ops::init_new_rows(ctx, index_.view(), arrays_.init(), arrays_.data());
  state.ready = state.finished = state.rows;
  index_.set_state(state);
}

void RowStore::check_keys() const {
  if (!direct()) return;
  for (int of = 0; of < 2; ++of) {
    ops::OutOfRangeKey* out_of_range_key = out_of_range(of == 1).host;
    if (!std::atomic_ref<int32_t>(out_of_range_key->found).load(std::memory_order_acquire)) continue;
    throw_out_of_range(of == 1, keys_.outside(out_of_range_key->key, out_of_range_key->slot));
  }
}

void RowStore::forget_keys_outside() {
  if (!direct()) return;
  const StreamRef stream = runtime_.compute_stream();
  const ops::OutOfRangeState none[2] = {};
  copy_bytes(stream, out_of_range_state_.data(), none, sizeof none);
  stream.synchronize();
  for (const bool evaluation : {false, true})
    std::atomic_ref<int32_t>(out_of_range(evaluation).host->found).store(0, std::memory_order_release);
}

void RowStore::throw_out_of_range(bool evaluation, const std::string& what) const {
  throw Error(Kind::data, cat(arrays_.label(), ": ", evaluation ? "evaluation" : "training", " data: ", what,
                              ". Keys are numbered through all slots, each slot after the slots before it. Correct the "
                              "sizes, or allow any keys: ",
                              setting_words(budget_.limits()).hash));
}

}  // namespace hctr
