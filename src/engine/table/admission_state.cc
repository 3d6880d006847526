// Saves and loads Admission in checkpoints.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/device/copy_bytes.h"
#include "engine/table/admission.h"
#include "engine/table/row_store_state.h"
#include "engine/table/saved_rows.h"

namespace hctr {
namespace {

template <class State>
void visit_gate(State& state, int64_t (&gate)[4]) {
  state.number("closed", gate[0]);
  state.number("shared_row", gate[1]);
  state.number("on_shared_row", gate[2]);
  state.number("without_row", gate[3]);
}

ops::GateState gate_of(const int64_t (&gate)[4]) {
  return {.closed = static_cast<uint32_t>(gate[0]),
          .shared_row = static_cast<uint32_t>(gate[1]),
          .on_shared_row = static_cast<uint64_t>(gate[2]),
          .without_row = static_cast<uint64_t>(gate[3])};
}

/// The candidates of all ranks that wrote a checkpoint.
struct Candidates {
  std::vector<int64_t> keys;
  std::vector<int32_t> slots;
  std::vector<uint32_t> last_seen, occurrences;

  /// Adds the candidates of a saved store for which `owns` returns true. `by_slot`: whether a candidate belongs to
  /// (slot, key) instead of a key.
  void add(const StateReader& store, bool by_slot, const std::function<bool(int64_t, int32_t)>& owns) {
    const int64_t count = store.at("keys").elements();
    const auto column = [&]<class T>(const char* name) { return read_rows<T>(store, store.at(name), 0, count, 1); };
    const auto all_keys = column.operator()<int64_t>("keys");
    const auto all_slots = by_slot || store.has("slots") ? column.operator()<int32_t>("slots") : std::vector<int32_t>();
    const auto seen = column.operator()<uint32_t>("last_seen");
    const auto counts = column.operator()<uint32_t>("occurrences");
    for (size_t i = 0; i < all_keys.size(); ++i) {
      const int32_t slot = all_slots.empty() ? 0 : all_slots[i];
      if (counts[i] == 0 || !owns(all_keys[i], slot)) continue;  // 0 marks an admitted candidate
      keys.push_back(all_keys[i]);
      slots.push_back(slot);
      last_seen.push_back(seen[i]);
      occurrences.push_back(counts[i]);
    }
  }

  /// Returns the `most` most recently seen candidates.
  Candidates latest(size_t most) const {
    std::vector<size_t> order(keys.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::tuple(-int64_t{last_seen[a]}, slots[a], keys[a]) <
             std::tuple(-int64_t{last_seen[b]}, slots[b], keys[b]);
    });
    order.resize(std::min(most, order.size()));
    Candidates kept;
    for (const size_t i : order) {
      kept.keys.push_back(keys[i]);
      kept.slots.push_back(slots[i]);
      kept.last_seen.push_back(last_seen[i]);
      kept.occurrences.push_back(occurrences[i]);
    }
    return kept;
  }
};

}  // namespace

void Admission::write_gate(const ops::GateState& gate) {
  gate_ = gate;
  copy_bytes(runtime_.compute_stream(), device_gate(), &gate_, sizeof gate_);
  runtime_.compute_stream().synchronize();
}

void Admission::save_state(StateWriter to) {
  const ops::GateState now = read_gate();
  int64_t gate[] = {now.closed, now.shared_row, static_cast<int64_t>(now.on_shared_row),
                    static_cast<int64_t>(now.without_row)};
  visit_gate(to, gate);
  to.number("candidates_dropped", candidates_dropped_);
  if (!candidates_) return;
  StateWriter store = to.in("candidates");
  save_rows(*candidates_, store);
}

void Admission::load_state(const StateReader& from) {
  int64_t gate[4];
  visit_gate(from, gate);
  write_gate(gate_of(gate));
  from.number("candidates_dropped", candidates_dropped_);
  if (candidates_) load_rows(*candidates_, from.in("candidates"));
}

void Admission::load_state_by_key(const std::vector<StateReader>& of_ranks, int rank,
                                  const std::function<bool(int64_t, int32_t)>& owns, bool full) {
  int64_t sums[4] = {};
  Candidates all;
  for (const StateReader& from : of_ranks) {
    int64_t gate[4];
    visit_gate(from, gate);
    for (size_t i = 0; i < 4; ++i) sums[i] += gate[i];
    if (rank == 0) candidates_dropped_ += from.number("candidates_dropped");
    if (candidates_) all.add(from.in("candidates"), by_slot_, owns);
  }
  ops::GateState gate{.closed = sums[0] > 0 && full, .shared_row = sums[1] > 0};
  if (rank == 0) {  // rank 0 stores the sums over all ranks
    gate.on_shared_row = static_cast<uint64_t>(sums[2]);
    gate.without_row = static_cast<uint64_t>(sums[3]);
  }
  write_gate(gate);
  if (!candidates_) return;
  const Candidates kept = all.latest(static_cast<size_t>(policy_.max_candidates));
  candidates_dropped_ += static_cast<int64_t>(all.keys.size() - kept.keys.size());
  const bool by_slot = candidates_->rows().index().view().row_slots;
  candidates_->assign_rows(kept.keys, by_slot ? std::span<const int32_t>(kept.slots) : std::span<const int32_t>());
  const StreamRef stream = runtime_.compute_stream();
  const auto fill = [&](uint32_t* column, const std::vector<uint32_t>& values) {
    copy_bytes(stream, column + 1, values.data(), values.size() * sizeof(uint32_t));
    stream.synchronize();
  };
  fill(candidates_->rows().arrays().access_stats().last_seen, kept.last_seen);
  fill(candidates_->rows().arrays().access_stats().occurrences, kept.occurrences);
}

}  // namespace hctr
