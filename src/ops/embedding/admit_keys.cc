#include "ops/embedding/admit_keys.h"

#include <algorithm>
#include <cmath>

namespace hctr::ops {

uint64_t AdmissionRule::threshold_of(double probability) {
  return static_cast<uint64_t>(std::ceil(probability * 4294967296.0));
}

void see_all_rows(Context& ctx, HashIndex index, IndexState* all) {
  HCTR_ON_DEVICE(ctx, see_all_rows(ctx, index, all));
}
void mark_unknown(Context& ctx, KeyBatch batch, const int32_t* rows, uint8_t* wanted) {
  HCTR_ON_DEVICE(ctx, mark_unknown(ctx, batch, rows, wanted));
}
void select_keys(Context& ctx, KeyBatch batch, const uint8_t* wanted, KeySelection selection, std::byte* scratch) {
  HCTR_ON_DEVICE(ctx, select_keys(ctx, batch, wanted, selection, scratch));
}
size_t select_keys_bytes(Device device, int64_t key_capacity) {
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::select_keys_bytes(key_capacity);
  }
  return 0;
}
void admit_keys(Context& ctx, KeyBatch batch, KeySelection unknown, const int32_t* candidates, AdmissionRule rule,
                const GateState* gate, uint8_t* wanted) {
  HCTR_EXPECT(ctx.state(), "admit_keys() needs a step state");
  HCTR_ON_DEVICE(ctx, admit_keys(ctx, batch, unknown, candidates, rule, gate, wanted));
}
void forget_admitted(Context& ctx, KeyBatch unknown, const int32_t* candidates, const uint8_t* wanted,
                     uint32_t* occurrences) {
  HCTR_ON_DEVICE(ctx, forget_admitted(ctx, unknown, candidates, wanted, occurrences));
}
void hand_out_rows(Context& ctx, KeyBatch unknown, const int32_t* positions, const int32_t* found, GateState* gate,
                   int32_t* rows) {
  HCTR_ON_DEVICE(ctx, hand_out_rows(ctx, unknown, positions, found, gate, rows));
}
void share_row(Context& ctx, KeyBatch batch, const GateState* gate, int32_t* rows) {
  HCTR_ON_DEVICE(ctx, share_row(ctx, batch, gate, rows));
}

namespace cpu {

void see_all_rows(Context&, HashIndex index, IndexState* all) {
  *all = *index.state;
  all->finished = std::min(all->rows, all->row_capacity);
}

void mark_unknown(Context&, KeyBatch batch, const int32_t* rows, uint8_t* wanted) {
  const int64_t size = batch.size();
  for (int64_t p = 0; p < batch.key_capacity; ++p) wanted[p] = p < size && rows[p] == 0;
}

void select_keys(Context&, KeyBatch batch, const uint8_t* wanted, KeySelection selection, std::byte*) {
  int32_t count = 0;
  for (int64_t s = 0; s < batch.slots; ++s) {
    selection.offsets[s] = count;
    for (int32_t p = batch.offsets[s * batch.samples]; p < batch.offsets[(s + 1) * batch.samples]; ++p)
      if (wanted[p]) {
        selection.keys[count] = batch.keys[p];
        selection.positions[count++] = p;
      }
  }
  selection.offsets[batch.slots] = count;
}

void admit_keys(Context& ctx, KeyBatch batch, KeySelection unknown, const int32_t* candidates, AdmissionRule rule,
                const GateState* gate, uint8_t* wanted) {
  std::fill_n(wanted, batch.key_capacity, uint8_t{0});
  if (gate->closed) return;
  int64_t bag = 0;  // positions are ascending, so the bag index only increases
  for (int64_t i = 0; i < unknown.offsets[batch.slots]; ++i) {
    const int32_t p = unknown.positions[i];
    while (batch.offsets[bag + 1] <= p) ++bag;
    wanted[i] = rule.occurrences ? rule.occurrences[candidates[i]] >= rule.min_count
                                 : rule.drawn(unknown.keys[i], batch, bag, ctx.state()->first_sample);
  }
}

void forget_admitted(Context&, KeyBatch unknown, const int32_t* candidates, const uint8_t* wanted,
                     uint32_t* occurrences) {
  for (int64_t i = 0; i < unknown.size(); ++i)
    if (wanted[i]) occurrences[candidates[i]] = 0;
}

void hand_out_rows(Context&, KeyBatch unknown, const int32_t* positions, const int32_t* found, GateState* gate,
                   int32_t* rows) {
  for (int64_t i = 0; i < unknown.size(); ++i) {
    int32_t row = found[i];
    if (row == 0) {
      if (gate->closed) row = static_cast<int32_t>(gate->shared_row);
      ++(gate->closed ? gate->on_shared_row : gate->without_row);
    }
    rows[positions[i]] = row;
  }
}

void share_row(Context&, KeyBatch batch, const GateState* gate, int32_t* rows) {
  for (int64_t p = 0; p < batch.size(); ++p)
    if (rows[p] == 0) rows[p] = static_cast<int32_t>(gate->shared_row);
}

}  // namespace cpu
}  // namespace hctr::ops
