#include "engine/table/gather_rows.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace hctr {
namespace {

constexpr char kRows = 'r', kFinished = 'f';

template <class Values>
void write(std::string& bytes, const Values& values) {
  const uint64_t count = values.size();
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(reinterpret_cast<const char*>(values.data()), count * sizeof values[0]);
}

template <class T>
void read(std::string_view& bytes, std::vector<T>& values) {
  uint64_t count = 0;
  HCTR_EXPECT(bytes.size() >= sizeof count, "rows of ", bytes.size(), " bytes");
  std::memcpy(&count, bytes.data(), sizeof count);
  bytes.remove_prefix(sizeof count);
  HCTR_EXPECT(bytes.size() / sizeof(T) >= count, "rows of ", bytes.size(), " bytes");
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
}

/// Calls visit(values) for every array of a RowBlock or RowCopies, in serialization order.
template <class Rows, class Visit>
void for_each_array(Rows& rows, const Visit& visit) {
  visit(rows.keys);
  visit(rows.slots);
  visit(rows.last_steps);
  visit(rows.last_seen);
  visit(rows.occurrences);
  visit(rows.vectors);
  for (auto& state : rows.states) visit(state);
}

}  // namespace

std::string to_bytes(const RowBlock& block) {
  std::string bytes(1, kRows);
  for_each_array(block, [&](const auto& values) { write(bytes, values); });
  return bytes;
}

RowCopies from_bytes(std::string_view bytes) {
  RowCopies rows;
  bytes.remove_prefix(1);
  for_each_array(rows, [&](auto& values) { read(bytes, values); });
  return rows;
}

void RowCopies::add(const RowBlock& from, size_t i, const TableSpec& spec) {
  const auto part = [i](auto& to, const auto& values, int64_t width) {
    const auto n = static_cast<size_t>(width);
    if (!values.empty())
      to.insert(to.end(), values.begin() + static_cast<std::ptrdiff_t>(i * n),
                values.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
  };
  part(keys, from.keys, 1);
  part(slots, from.slots, 1);
  part(last_steps, from.last_steps, 1);
  part(last_seen, from.last_seen, 1);
  part(occurrences, from.occurrences, 1);
  part(vectors, from.vectors, spec.dim);
  for (size_t s = 0; s < ops::kMostStates; ++s) part(states[s], from.states[s], spec.state_dim());
}

void RowCopies::add_piece(const RowBlock& from, size_t i, size_t p, const TableSpec& spec) {
  const auto pieces = static_cast<size_t>(spec.pieces);
  const auto one = [i](auto values) { return values.empty() ? values : values.subspan(i, 1); };
  RowBlock piece{one(from.keys), {}, {}, {}, one(from.last_steps), one(from.last_seen), one(from.occurrences)};
  const auto cut = [&](std::span<const float> whole, int64_t width) {
    const auto n = static_cast<size_t>(width);
    return whole.empty() ? whole : whole.subspan((i * pieces + p) * n, n);
  };
  piece.vectors = cut(from.vectors, spec.dim);
  for (size_t s = 0; s < ops::kMostStates; ++s) piece.states[s] = cut(from.states[s], spec.state_dim());
  add(piece, 0, spec);
  if (!from.slots.empty()) slots.push_back(static_cast<int32_t>(static_cast<size_t>(from.slots[i]) * pieces + p));
}

RowBlock RowCopies::block() const {
  RowBlock out{keys, slots, vectors, {}, last_steps, last_seen, occurrences};
  for (size_t s = 0; s < ops::kMostStates; ++s) out.states[s] = states[s];
  return out;
}

RowGathering::RowGathering(Communicator& comm, const TableSpec& spec, const std::function<void(const RowBlock&)>& sink)
    : comm_(comm), spec_(spec), sink_(sink), ranks_(comm.rank() == 0 ? static_cast<size_t>(comm.size()) : 0) {}

/// Rank 0 broadcasts which ranks must send rows next, or an empty text when all rows are merged.
RowGathering::Turn RowGathering::answer(const std::string& mine) {
  const std::string wanted = comm_.broadcast("", 0);
  if (wanted.empty()) return Turn::over;
  const bool me = wanted[static_cast<size_t>(comm_.rank())] == '1';
  comm_.gather(me ? mine : "", 0);
  return me ? Turn::mine : Turn::others;
}

void RowGathering::add(const RowBlock& block) {
  if (comm_.rank() != 0) {
    const std::string bytes = to_bytes(block);
    while (answer(bytes) != Turn::mine) {
    }
    return;
  }
  ranks_[0].rows = from_bytes(to_bytes(block));
  while (!ranks_[0].rows.empty()) {
    fill();
    merge();
  }
}

void RowGathering::finish() {
  if (comm_.rank() != 0) {
    while (answer(std::string(1, kFinished)) != Turn::over) {
    }
    return;
  }
  ranks_[0].finished = true;
  for (fill(); std::any_of(ranks_.begin(), ranks_.end(), [](const FromRank& from) { return !from.rows.empty(); });
       fill())
    merge();
  comm_.broadcast("", 0);
}

/// Receives rows until rank 0 has rows of every rank that is not finished. Rank 0 then knows the smallest remaining
/// row.
void RowGathering::fill() {
  for (;;) {
    std::string wanted;
    for (size_t r = 0; r < ranks_.size(); ++r)
      wanted += r > 0 && !ranks_[r].finished && ranks_[r].rows.empty() ? '1' : '0';
    if (wanted.find('1') == wanted.npos) return;
    comm_.broadcast(wanted, 0);
    const auto answers = comm_.gather("", 0);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (wanted[r] == '0') continue;
      if (answers[r][0] == kFinished)
        ranks_[r].finished = true;
      else
        ranks_[r].rows = from_bytes(answers[r]);
    }
  }
}

bool RowGathering::before(const RowCopies& a, const RowCopies& b) const {
  const int32_t slot_a = a.slots.empty() ? 0 : a.slots[a.next], slot_b = b.slots.empty() ? 0 : b.slots[b.next];
  return std::tuple(slot_a / spec_.pieces, a.keys[a.next], slot_a) <
         std::tuple(slot_b / spec_.pieces, b.keys[b.next], slot_b);
}

/// Merges rows until the rows of an unfinished rank are used up.
void RowGathering::merge() {
  RowCopies merged;
  for (bool more = true; more;) {
    FromRank* first = nullptr;
    for (FromRank& from : ranks_)
      if (!from.rows.empty() && (!first || before(from.rows, first->rows))) first = &from;
    if (!first) break;
    merged.add(first->rows.block(), first->rows.next++, spec_);
    more = !first->rows.empty() || first->finished;
  }
  if (!merged.empty()) sink_(merged.block());
}

void merge_rows(const RowBlock& mine,
                const std::function<void(const std::function<void(const RowBlock&)>& sink)>& others,
                const TableSpec& spec, const std::function<void(const RowBlock&)>& sink) {
  const auto owner = [](const RowBlock& block, size_t i) {
    return std::pair(block.slots.empty() ? 0 : block.slots[i], block.keys[i]);
  };
  size_t next = 0;  // index of the next row of `mine`
  others([&](const RowBlock& block) {
    RowCopies merged;
    for (size_t i = 0; i < block.keys.size(); ++i) {
      while (next < mine.keys.size() && owner(mine, next) < owner(block, i)) merged.add(mine, next++, spec);
      if (next < mine.keys.size() && owner(mine, next) == owner(block, i))
        merged.add(mine, next++, spec);
      else
        merged.add(block, i, spec);
    }
    sink(merged.block());
  });
  RowCopies rest;
  while (next < mine.keys.size()) rest.add(mine, next++, spec);
  if (!rest.empty()) sink(rest.block());
}

void PieceJoining::add(const RowBlock& rows) {
  for (size_t i = 0; i < rows.keys.size(); ++i) waiting_.add(rows, i, spec_);
  const auto pieces = static_cast<size_t>(spec_.pieces), whole = waiting_.keys.size() / pieces;
  if (whole == 0) return;
  RowCopies joined, rest;
  const RowBlock all = waiting_.block();
  for (size_t i = 0; i < whole * pieces; ++i) {
    if (i % pieces == 0) {
      joined.keys.push_back(all.keys[i]);
      joined.slots.push_back(static_cast<int32_t>(all.slots[i] / spec_.pieces));
      if (!all.last_steps.empty()) joined.last_steps.push_back(all.last_steps[i]);
      if (!all.last_seen.empty()) joined.last_seen.push_back(all.last_seen[i]);
      if (!all.occurrences.empty()) joined.occurrences.push_back(all.occurrences[i]);
    } else {
      HCTR_EXPECT(all.keys[i] == joined.keys.back() && all.slots[i] % spec_.pieces == static_cast<int64_t>(i % pieces),
                  "table '", spec_.name, "': the pieces of key ", joined.keys.back(), " are not together");
    }
  }
  // Adjacent pieces already have the layout of a whole row.
  const auto first = [&](std::span<const float> values, int64_t width) {
    return values.empty() ? values : values.subspan(0, whole * pieces * static_cast<size_t>(width));
  };
  RowBlock out = joined.block();
  out.vectors = first(all.vectors, spec_.dim);
  for (size_t s = 0; s < ops::kMostStates; ++s) out.states[s] = first(all.states[s], spec_.state_dim());
  sink_(out);
  for (size_t i = whole * pieces; i < all.keys.size(); ++i) rest.add(all, i, spec_);
  waiting_ = std::move(rest);
}

void import_owned_rows(const Placement& placement, int64_t rank, const RowBlock& rows, EmbeddingTable& table) {
  const TableSpec& spec = table.spec();
  RowCopies owned;
  for (size_t i = 0; i < rows.keys.size(); ++i)
    for (int64_t p = 0; p < spec.pieces; ++p) {
      const int64_t slot = rows.slots.empty() ? 0 : rows.slots[i] * spec.pieces + p;
      const bool exists = slot >= 0 && slot < spec.slots;  // `table` reports a slot that does not exist
      if (!exists || placement.owner(slot, rows.keys[i]) == rank)
        owned.add_piece(rows, i, static_cast<size_t>(p), spec);
    }
  table.import_rows(owned.block());
}

}  // namespace hctr
