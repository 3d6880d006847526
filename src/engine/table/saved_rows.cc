#include "engine/table/saved_rows.h"

#include <algorithm>

#include "core/base/half.h"

namespace hctr {
namespace {

constexpr int64_t kBlockBytes = int64_t{16} << 20;  // bytes of vectors per block

/// Reads rows of any stored floating-point type, converted to float.
std::vector<float> floats(const StateReader& table, const StateArray& array, int64_t first, int64_t count,
                          int64_t width) {
  const auto widened = [&]<class T>(const std::vector<T>& narrow) {
    std::vector<float> wide;
    for (const T value : narrow) wide.push_back(static_cast<float>(value));
    return wide;
  };
  if (array.type == "f16") return widened(read_rows<Half>(table, array, first, count, width));
  if (array.type == "bf16") return widened(read_rows<BFloat16>(table, array, first, count, width));
  return read_rows<float>(table, array, first, count, width);
}

DirectKeys direct_keys_of(const StateReader& table) {
  DirectKeys keys;
  if (!table.has("spans")) return keys;
  std::vector<int64_t> numbers;
  table.list("spans", numbers);
  for (size_t i = 0; i + 4 <= numbers.size(); i += 4)
    keys.spans.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
  keys.by_slot = table.number("by_slot") != 0;
  int64_t rows = 0, last_key = 0;
  bool right = numbers.size() == 4 * keys.spans.size();
  for (const ops::KeySpan& span : keys.spans) {
    right = right && span.base == rows && span.count >= 0 && span.step >= 0 &&
            !__builtin_mul_overflow(span.count, span.step, &last_key) &&
            !__builtin_add_overflow(span.first, last_key, &last_key) &&
            !__builtin_add_overflow(rows, span.count, &rows);
  }
  if (const int64_t saved = table.number("rows"); !right || rows != saved)
    throw Error(Kind::data, cat("a checkpoint has ", saved, " rows of direct keys, but its ", keys.spans.size(),
                                " ranges of keys describe another number of rows"));
  return keys;
}

}  // namespace

RowCopies SavedRows::read_block(const StateReader& table, const TableSpec& of_pieces, const DirectKeys& direct,
                                int64_t first, int64_t count) {
  const int64_t at = first - 1;  // saved arrays start with row 1
  RowCopies rows;
  if (direct.empty()) {
    rows.keys = read_rows<int64_t>(table, table.at("keys"), at, count, 1);
    if (of_pieces.identity_by_slot || of_pieces.pieces > 1 || table.has("slots"))
      rows.slots = read_rows<int32_t>(table, table.at("slots"), at, count, 1);
  } else {
    for (int64_t row = first; row < first + count; ++row) {
      const ops::RowOwner owner = direct.index().owner(row);
      rows.keys.push_back(owner.key);
      if (direct.by_slot) rows.slots.push_back(owner.slot);
    }
  }
  rows.vectors = floats(table, table.at("vectors"), at, count, of_pieces.dim);
  // `table` may lack the states, because evaluation does not need them
  for (size_t s = 0; s < static_cast<size_t>(of_pieces.optimizer.states()); ++s)
    if (const std::string name = cat("state", s); table.has(name))
      rows.states[s] = floats(table, table.at(name), at, count, of_pieces.state_dim());
  if (table.has("last_step")) rows.last_steps = read_rows<int32_t>(table, table.at("last_step"), at, count, 1);
  if (table.has("last_seen")) rows.last_seen = read_rows<uint32_t>(table, table.at("last_seen"), at, count, 1);
  if (table.has("occurrences")) rows.occurrences = read_rows<uint32_t>(table, table.at("occurrences"), at, count, 1);
  return rows;
}

void SavedRows::read(const StateReader& table, std::span<const int32_t> seen) {
  const int64_t first_row = table.number("first_row"), last = table.number("rows"), pieces = table.number("pieces");
  const DirectKeys direct = direct_keys_of(table);
  if (pieces < 1 || spec_.dim % pieces != 0)
    throw Error(Kind::data, cat("a checkpoint has the rows of table '", spec_.name, "' in ", pieces, " pieces"));
  const StateArray& vectors = table.at("vectors");
  const int64_t saved = vectors.shape.empty() ? 0 : vectors.shape[0];
  const bool all_seen = seen.empty() || static_cast<int64_t>(seen.size()) > last;
  if (first_row < 1 || last < 0 || last > saved || first_row > last + 1 || !all_seen)
    throw Error(Kind::data, cat("a checkpoint has rows ", first_row, " to ", last, " of table '", spec_.name, "', and ",
                                saved, " vectors", all_seen ? "" : ", but fewer marks of seen rows"));
  TableSpec of_pieces = spec_;
  of_pieces.pieces = pieces;
  of_pieces.dim = spec_.dim / pieces;
  const int64_t block = std::max<int64_t>(kBlockBytes / (spec_.dim * 4), 1);
  for (int64_t first = first_row; first <= last; first += block) {
    const int64_t count = std::min(block, last + 1 - first);
    const RowCopies all = read_block(table, of_pieces, direct, first, count);
    if (pieces > 1 && all.slots.empty())
      throw Error(Kind::data, cat("a checkpoint has pieces of rows of table '", spec_.name, "' without their slots"));
    RowCopies taken;
    for (int64_t i = 0; i < count; ++i)
      if (seen.empty() || seen[static_cast<size_t>(first + i)] != 0)
        taken.add(all.block(), static_cast<size_t>(i), of_pieces);
    if (taken.empty()) continue;
    if (pieces == 1)
      sink_(taken.block());
    else
      join(taken, of_pieces);
  }
}

void SavedRows::join(const RowCopies& cut, const TableSpec& of_pieces) {
  const auto pieces = static_cast<size_t>(of_pieces.pieces);
  const RowBlock block = cut.block();
  RowCopies joined;
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const auto slot = static_cast<int32_t>(block.slots[i] / of_pieces.pieces);
    const auto at = waiting_.try_emplace({slot, block.keys[i]}, pieces).first;
    std::vector<RowCopies>& row = at->second;
    row[static_cast<size_t>(block.slots[i] % of_pieces.pieces)].add(block, i, of_pieces);
    if (std::any_of(row.begin(), row.end(), [](const RowCopies& piece) { return piece.keys.empty(); })) continue;
    joined.keys.push_back(block.keys[i]);
    joined.slots.push_back(slot);
    joined.last_steps.insert(joined.last_steps.end(), row[0].last_steps.begin(), row[0].last_steps.end());
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    for (const RowCopies& piece : row) {
      append(joined.vectors, piece.vectors);
      for (size_t s = 0; s < ops::kMostStates; ++s) append(joined.states[s], piece.states[s]);
    }
    waiting_.erase(at);
  }
  if (!joined.empty()) sink_(joined.block());
}

void SavedRows::finish() const {
  if (!waiting_.empty())
    throw Error(Kind::data, cat("a checkpoint lacks pieces of ", waiting_.size(), " rows of table '", spec_.name, "'"));
}

}  // namespace hctr
