#include "embedding/mixed_embedding.h"

#include "embedding/gather_rows.h"

namespace hctr {
namespace {

TableSpec spec_everywhere(TableSpec spec, const Placement& placement) {
  HCTR_EXPECT(!spec.direct.empty() && spec.identity_by_slot, "table '", spec.name, "': slots on every rank, whose keys are not known");
  spec.direct = keys_on_every_rank(spec.direct, placement);
  return spec;
}

std::vector<bool> slots_everywhere(const TableSpec& spec, const Placement& placement) {
  std::vector<bool> slots;
  for (int64_t s = 0; s < spec.slots; ++s) slots.push_back(placement.on_every_rank(s * placement.pieces));
  return slots;
}

}  // namespace

MixedEmbedding::MixedEmbedding(Runtime& runtime, Communicator& comm, Placement placement, TableSpec spec, const std::vector<int64_t>& slot_keys, int ring_slots)
    : comm_(comm), on_every_rank_(slots_everywhere(spec, placement)), everywhere_(runtime, comm, spec_everywhere(spec, placement), ring_slots),
      others_(runtime, comm, placement, std::move(spec), slot_keys, ring_slots) {}

void MixedEmbedding::ensure_room(int64_t step) {
  everywhere_.table().ensure_room(step);
  others_.ensure_room(step);
}

void MixedEmbedding::check_keys() {
  everywhere_.table().check_keys();
  others_.check_keys();
}

void MixedEmbedding::prepare(Context& ctx, int slot, Tensor keys, Tensor offsets) {
  everywhere_.prepare(ctx, slot, keys, offsets);
  others_.prepare(ctx, slot, keys, offsets);
}

void MixedEmbedding::pool_own(Context& ctx, int slot, Tensor y) {
  others_.pool_own(ctx, slot, y);
  everywhere_.forward(ctx, slot, y);
}

void MixedEmbedding::update(Context& ctx, int slot, Tensor dy) {
  others_.update(ctx, slot, dy);
  everywhere_.update(ctx, slot);
}

void MixedEmbedding::lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) {
  everywhere_.lookup(ctx, keys, offsets, y);
  others_.lookup(ctx, keys, offsets, y, nullptr, true);
}

void MixedEmbedding::export_rows(bool with_states, const std::function<void(const RowBlock&)>& take) {
  RowCopies mine;
  if (comm_.rank() == 0)
    everywhere_.table().export_rows(with_states, [&](const RowBlock& block) {
      for (size_t i = 0; i < block.keys.size(); ++i) mine.add(block, i, spec());
    });
  merge_rows(mine.block(), [&](const auto& give) { others_.export_rows(with_states, give); }, spec(), take);
}

void MixedEmbedding::import_rows(const RowBlock& rows) {
  RowCopies mine;
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    const int32_t slot = rows.slots[i];
    if (slot >= 0 && static_cast<size_t>(slot) < on_every_rank_.size() && on_every_rank_[static_cast<size_t>(slot)]) mine.add(rows, i, spec());
  }
  everywhere_.table().import_rows(mine.block());
  others_.import_rows(rows);  // which leaves out rows that it has no owner for
}

}  // namespace hctr
