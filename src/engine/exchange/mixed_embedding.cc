#include "engine/exchange/mixed_embedding.h"

#include "engine/spec/derived_specs.h"
#include "engine/table/gather_rows.h"

namespace hctr {
namespace {

std::vector<bool> slots_everywhere(const TableSpec& spec, const Placement& placement) {
  std::vector<bool> slots;
  for (int64_t s = 0; s < spec.slots; ++s) slots.push_back(placement.replicated(s * placement.pieces));
  return slots;
}

}  // namespace

MixedEmbedding::MixedEmbedding(Runtime& runtime, Communicator& comm, const Placement& placement, const TableSpec& spec,
                               int ring_size, const EmbeddingOutputs& outputs)
    : PartlyReplicated(runtime, comm, replicated_slots_spec(spec, placement), {placement, spec, ReplicatedPart::slots},
                       ring_size, outputs),
      on_every_rank_(slots_everywhere(spec, placement)) {}

bool MixedEmbedding::reserve_memory() {
  const bool replicated = replicated_.table().reserve_memory();
  return others_.reserve_memory() || replicated;
}

void MixedEmbedding::reserve_rows(int64_t step) {
  replicated_.table().reserve_rows(step);
  others_.reserve_rows(step);
}

void MixedEmbedding::check_keys() {
  replicated_.table().check_keys();
  others_.check_keys();
}

void MixedEmbedding::send_keys(Context& ctx, Recording* recording, int buffer, Tensor keys, Tensor offsets) {
  replicated_.prepare(ctx, buffer, keys, offsets);
  others_.send_keys(ctx, recording, buffer, keys, offsets);
}

void MixedEmbedding::lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) {
  others_.ask_owners(ctx, keys, offsets);
  replicated_.lookup(ctx, replicated_.find(ctx, keys, offsets), y, others_.lookup_writers());
  others_.add_lookup(ctx, y);
}

void MixedEmbedding::export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) {
  RowCopies mine;
  if (comm_.rank() == 0)
    replicated_.table().export_rows(wanted, [&](const RowBlock& block) {
      for (size_t i = 0; i < block.keys.size(); ++i) mine.add(block, i, spec());
    });
  merge_rows(mine.block(), [&](const auto& emit) { others_.export_rows(wanted, emit); }, spec(), sink);
}

void MixedEmbedding::import_rows(const RowBlock& rows) {
  RowCopies mine;
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    const int32_t slot = rows.slots[i];
    if (slot >= 0 && static_cast<size_t>(slot) < on_every_rank_.size() && on_every_rank_[static_cast<size_t>(slot)])
      mine.add(rows, i, spec());
  }
  replicated_.table().import_rows(mine.block());
  others_.import_rows(rows);  // others_ skips rows that it does not own
}

}  // namespace hctr
