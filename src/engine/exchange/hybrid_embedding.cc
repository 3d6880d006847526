#include "engine/exchange/hybrid_embedding.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/spec/derived_specs.h"

namespace hctr {
namespace {

using FrequentRow = EmbeddingTable::FrequentRow;

FrequentKeys keys_of_file(const TableSpec& spec) {
  if (spec.replication.keys_file.empty()) return {};
  return in_context([&] { return cat("reading the frequent keys of table '", spec.name, "'"); },
                    [&] { return read_frequent_keys(spec.replication.keys_file, spec.identity_by_slot, spec.slots); });
}

int64_t most_rows(const TableSpec& spec, const FrequentKeys& named) {
  if (!spec.replication.keys_file.empty()) return static_cast<int64_t>(named.keys.size());
  if (spec.direct.empty()) return spec.replication.most_rows;
  return std::min(spec.replication.most_rows,
                  std::accumulate(spec.direct.size.begin(), spec.direct.size.end(), int64_t{0}));
}

std::string as_text(const std::vector<FrequentRow>& rows) {
  return {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(FrequentRow)};
}
void add_from(std::string_view text, std::vector<FrequentRow>& rows) {
  const size_t before = rows.size();
  rows.resize(before + text.size() / sizeof(FrequentRow));
  if (!text.empty()) std::memcpy(rows.data() + before, text.data(), text.size());
}

bool by_key(const FrequentRow& a, const FrequentRow& b) { return std::pair(a.slot, a.key) < std::pair(b.slot, b.key); }

}  // namespace

HybridEmbedding::HybridEmbedding(Runtime& runtime, Communicator& comm, Placement placement, const TableSpec& spec,
                                 int ring_size, const EmbeddingOutputs& outputs)
    : HybridEmbedding(runtime, comm, {std::move(placement), spec, ReplicatedPart::keys}, ring_size, outputs,
                      keys_of_file(spec)) {}

HybridEmbedding::HybridEmbedding(Runtime& runtime, Communicator& comm, ShardedRows rows, int ring_size,
                                 const EmbeddingOutputs& outputs, FrequentKeys named)
    : PartlyReplicated(runtime, comm, frequent_rows_spec(rows.spec, most_rows(rows.spec, named)),
                       {rows.placement, counting_spec(rows.spec), rows.replicated}, ring_size, outputs),
      steps_left_(rows.spec.replication.keys_file.empty() ? rows.spec.replication.steps : -1),
      most_rows_(most_rows(rows.spec, named)),
      have_owners_(rows.spec.replication.keys_file.empty() || !rows.spec.direct.empty()) {
  if (named.keys.empty()) return;
  const TableSpec& spec = rows.spec;
  // If the keys of a file are direct keys, treat them as having occurred, because all rows of direct keys exist from
  // the start.
  const bool seen = !spec.direct.empty();
  for (size_t i = 0; seen && i < named.keys.size(); ++i)
    if (const int64_t slot = spec.identity_by_slot ? named.slots[i] : 0; !spec.direct.has(named.keys[i], slot))
      throw Error(Kind::data, cat("'", spec.replication.keys_file, "', frequent keys of table '", spec.name,
                                  "': ", spec.direct.outside(named.keys[i], slot)));
  replicated_.assign_rows(std::move(named.keys), std::move(named.slots), seen);
}

void HybridEmbedding::reserve_rows(int64_t step) {
  if (steps_left_ == 0) find_frequent();
  if (steps_left_ >= 0) --steps_left_;
  others_.reserve_rows(step);
}

void HybridEmbedding::find_frequent() {
  const std::vector<FrequentRow> mine = others_.table().most_frequent(most_rows_);
  std::vector<FrequentRow> chosen;
  for (const std::string& part : comm_.gather(as_text(mine), 0)) add_from(part, chosen);
  std::sort(chosen.begin(), chosen.end());
  const int64_t least = least_occurrences() * spec().replication.steps;
  std::erase_if(chosen, [least](const FrequentRow& row) { return row.occurrences < least; });
  chosen.resize(std::min(chosen.size(), static_cast<size_t>(most_rows_)));
  std::sort(chosen.begin(), chosen.end(), by_key);
  const std::string text = comm_.broadcast(as_text(chosen), 0);
  chosen.clear();
  add_from(text, chosen);
  if (chosen.empty()) return;

  std::vector<FrequentRow> owned;
  for (const FrequentRow& row : mine)
    if (std::binary_search(chosen.begin(), chosen.end(), row, by_key)) owned.push_back(row);
  std::sort(owned.begin(), owned.end(), by_key);
  RowCopies rows;
  const TableSpec& spec = others_.spec();
  const std::function<void(const RowBlock&)> sink = [&](const RowBlock& block) {
    for (size_t i = 0; i < block.keys.size(); ++i) rows.add(block, i, spec);
  };
  RowGathering gathering(comm_, spec, sink);
  others_.table().export_rows(owned, [&](const RowBlock& block) { gathering.add(block); });
  gathering.finish();
  rows = from_bytes(comm_.broadcast(comm_.rank() == 0 ? to_bytes(rows.block()) : "", 0));
  replicated_.assign_rows(rows.keys, rows.slots, true);
  replicated_.import_rows(rows.block());
  changed_ = true;
}

/// The number of occurrences above which replication sends fewer bytes. With R ranks, the all-reduce of a replicated
/// row makes each rank send 2 (R - 1) / R rows in f32. Exchanging n occurrences makes each rank send 2 (n / R) (R - 1)
/// / R vectors in the exchange dtype, forward and backward together.
int64_t HybridEmbedding::least_occurrences() const {
  return comm_.size() * static_cast<int64_t>(sizeof(float)) / size_of(others_.spec().exchange);
}

void HybridEmbedding::send_keys(Context& ctx, Recording* recording, int buffer, Tensor keys, Tensor offsets) {
  replicated_.prepare(ctx, buffer, keys, offsets);
  others_.send_keys(ctx, recording, buffer, keys, offsets, replicated_.rows_of(buffer));
}

void HybridEmbedding::lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) {
  const EmbeddingTable::Batch batch = replicated_.find(ctx, keys, offsets);
  others_.ask_owners(ctx, keys, offsets, batch.rows);
  replicated_.lookup(ctx, batch, y, others_.lookup_writers());
  others_.add_lookup(ctx, y);
}

RowCopies HybridEmbedding::frequent_rows(RowsToExport wanted) {
  RowCopies rows;
  if (comm_.rank() == 0 && replicated_.has_rows())
    replicated_.export_rows(
        [&](const RowBlock& block) {
          for (size_t i = 0; i < block.keys.size(); ++i) rows.add(block, i, spec());
        },
        wanted.changed);
  if (wanted.states) return rows;
  rows.last_steps.clear();
  for (auto& state : rows.states) state.clear();
  return rows;
}

int64_t HybridEmbedding::rows() { return others_.rows() + (have_owners_ ? 0 : replicated_.rows_seen()); }

void HybridEmbedding::export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) {
  const RowCopies copies = frequent_rows(wanted);
  merge_rows(copies.block(), [&](const auto& emit) { others_.export_rows(wanted, emit); }, spec(), sink);
}

void HybridEmbedding::import_rows(const RowBlock& rows) {
  if (replicated_.has_rows()) replicated_.import_rows(rows);
  if (have_owners_ || !replicated_.has_rows()) return others_.import_rows(rows);
  RowCopies others;
  for (size_t i = 0; i < rows.keys.size(); ++i)
    if (!replicated_.has(rows.keys[i], rows.slots.empty() ? 0 : rows.slots[i])) others.add(rows, i, spec());
  others_.import_rows(others.block());
}

void HybridEmbedding::save_state(StateWriter to) {
  PartlyReplicated::save_state(to);
  to.number("steps_left", steps_left_);
}

void HybridEmbedding::load_exactly(const StateReader& from) {
  PartlyReplicated::load_exactly(from);
  from.number("steps_left", steps_left_);
}

void HybridEmbedding::load_by_key(const StateReader& from) {
  // Frequent keys of the checkpoint stay frequent. A search for frequent keys continues with the remaining
  // `steps_left`. If the checkpoint has no `steps_left`, its run made no search, so this run searches from the start.
  if (from.has("steps_left") && spec().replication.keys_file.empty()) {
    from.number("steps_left", steps_left_);
    if (const ReplicatedRows::Keys keys = replicated_.saved_keys(from.in(kReplicatedState)); !keys.keys.empty())
      replicated_.assign_rows(keys.keys, keys.slots, true);
  }
  PartlyReplicated::load_by_key(from);
}

}  // namespace hctr
