#include "engine/rows/row_arrays.h"

#include <algorithm>
#include <utility>

#include "core/base/random.h"
#include "core/device/copy_bytes.h"
#include "ops/embedding/row_records.h"
#include "ops/embedding/row_swap.h"

namespace hctr {
namespace {

/// Bytes of the staging buffer for copies of rows to the host. Smaller on a CPU, where the buffer reduces the memory
/// for rows.
int64_t bytes_to_stage(Device device, int64_t largest_row) {
  if (!device.is_cuda()) return (int64_t{64} << 10) + largest_row;
  return std::max(int64_t{4} << 20, (ops::RecordParts::kMost + 2) * largest_row + (int64_t{1} << 10));
}

}  // namespace

RowArrays::RowArrays(Runtime& runtime, RowMemory& budget, const TableSpec& spec, bool on_disk, int64_t rows)
    : runtime_(runtime),
      label_(label_of(spec)),
      most_rows_(rows),
      slot_bounds_(runtime.device(), spec.slot_bounds.size() * sizeof(float)),
      steps_before_(runtime.device(), spec.policy.tracks_last_step() || on_disk ? sizeof(uint32_t) : 0) {
  HCTR_EXPECT(spec.slot_bounds.empty() || spec.slot_bounds.size() == static_cast<size_t>(spec.slots),
              spec.slot_bounds.size(), " initial bounds for ", spec.slots, " slots");
  // Rows of direct keys need an index if they may be on disk. Checkpoints store rows of direct keys in key order,
  // without keys.
  const bool has_index = on_disk || spec.direct.empty(), saves_keys = spec.direct.empty();
  data_.dim = spec.dim;
  keys_ = add_column<int64_t>("keys", "i64", has_index, 1);
  slots_ = add_column<int32_t>("slots", "i32", has_index && spec.identity_by_slot, 1);
  for (RowColumn& column : columns_) column.saved = saves_keys;
  data_.identity = {keys_, slots_, {}};
  data_.vectors = add_numbers("vectors", spec.storage, spec.dim, budget);
  data_.state_dim = spec.state_dim();
  for (int s = 0; s < spec.optimizer.states(); ++s)
    data_.states[s] = add_numbers(cat("state", s), spec.stored_states(), data_.state_dim, budget);
  data_.last_step = add_column<int32_t>("last_step", "i32", spec.update == UpdateType::lazy_global, 1);
  data_.touched = add_column<uint8_t>("touched", "u8", spec.changes_every_row(), 1);
  const RowPolicy& policy = spec.policy;
  access_stats_.last_seen = add_column<uint32_t>("last_seen", "u32", policy.tracks_last_step() || on_disk, 1);
  if (access_stats_.last_seen) columns_.back().saved = policy.tracks_last_step();
  access_stats_.occurrences = add_column<uint32_t>("occurrences", "u32", policy.counts_occurrences() || on_disk, 1);
  if (access_stats_.occurrences) columns_.back().saved = policy.counts_occurrences();
  if (spec.marks_changes && !spec.changes_every_row()) {
    marks_.emplace(runtime.device(), static_cast<size_t>(most_rows_ + 1));
    access_stats_.changed = reinterpret_cast<uint8_t*>(marks_->data());
    base_places_ = add_column<int32_t>("base_places", "i32", on_disk, 1);
    if (base_places_) columns_.back().saved = false;
  }
  left_ = reinterpret_cast<ops::Fate*>(add_column<uint8_t>("left", "u8", on_disk, 1));
  if (left_) columns_.back().saved = false;
  if (marks_ || on_disk) {
    int64_t largest = 0;
    for (const RowColumn& column : columns_) largest = std::max(largest, column.bytes_per_row);
    staging_.emplace(runtime.device(), static_cast<size_t>(bytes_to_stage(runtime.device(), largest)));
  }
  if (access_stats_.last_seen) access_stats_.steps_before = reinterpret_cast<const uint32_t*>(steps_before_.data());
  data_.rounding = random_key(runtime.options().seed, random_stream("rounding:" + spec.name));
  set_init(spec, on_disk);
}

void RowArrays::set_init(const TableSpec& spec, bool on_disk) {
  init_.key = random_key(runtime_.options().seed, random_stream("table:" + spec.name));
  for (int s = 0; s < spec.optimizer.states(); ++s) init_.state_start[s] = spec.optimizer.start(s);
  init_.bound = spec.init_bound;
  init_.kind = spec.init_kind;
  init_.all_states = on_disk;
  init_.pieces = static_cast<int32_t>(spec.pieces);
  init_.piece_dim = static_cast<int32_t>(spec.pieces > 1 ? spec.dim : 0);
  if (spec.slot_bounds.empty()) return;
  init_.slot_bounds = reinterpret_cast<const float*>(slot_bounds_.data());
  copy_bytes(runtime_.compute_stream(), slot_bounds_.data(), spec.slot_bounds.data(), slot_bounds_.bytes());
  runtime_.compute_stream().synchronize();
}

template <class T>
T* RowArrays::add_column(std::string name, std::string_view type, bool wanted, int64_t elements_per_row,
                         RowMemory* budget) {
  if (!wanted || elements_per_row == 0) return nullptr;
  const int64_t bytes = elements_per_row * static_cast<int64_t>(sizeof(T));
  columns_.push_back(
      {.memory = ReservedBuffer(runtime_.device(), static_cast<size_t>((most_rows_ + 1) * bytes), budget),
       .bytes_per_row = bytes,
       .name = std::move(name),
       .type = std::string(type),
       .elements_per_row = elements_per_row,
       .numbers = budget != nullptr});
  return reinterpret_cast<T*>(columns_.back().memory.data());
}

ops::RowMemory RowArrays::add_numbers(std::string name, DType dtype, int64_t elements_per_row, RowMemory& budget) {
  const std::string_view type = name_of(dtype);
  if (size_of(dtype) == 2) return {add_column<uint16_t>(std::move(name), type, true, elements_per_row, &budget), dtype};
  return {add_column<float>(std::move(name), type, true, elements_per_row, &budget), dtype};
}

const RowColumn& RowArrays::column(std::string_view name) const {
  const auto column =
      std::find_if(columns_.begin(), columns_.end(), [&](const RowColumn& each) { return each.name == name; });
  HCTR_EXPECT(column != columns_.end(), label_, " has no '", name, "'");
  return *column;
}

const RowColumn& RowArrays::first_saved() const {
  return *std::find_if(columns_.begin(), columns_.end(), [](const RowColumn& column) { return column.saved; });
}

void RowArrays::set_steps_before(uint32_t steps) {
  copy_bytes(runtime_.compute_stream(), steps_before_.data(), &steps, sizeof steps);
  runtime_.compute_stream().synchronize();
}

void RowArrays::grow_besides_numbers(int64_t rows) {
  for (RowColumn& column : columns_)
    if (!column.numbers) column.memory.grow(column.bytes_to(rows));
  if (marks_) marks_->grow(static_cast<size_t>(rows + 1));
}

void RowArrays::grow_numbers(int64_t rows, int64_t on_device) {
  for (RowColumn& column : columns_) {
    if (!column.numbers) continue;
    if (on_device == rows) {
      column.memory.grow(column.bytes_to(rows));
      continue;
    }
    const size_t border = column.granules_to(on_device);
    if (border > column.memory.bytes()) column.memory.grow(border);
    column.memory.grow_on_host(column.bytes_to(rows));
  }
}

void RowArrays::move_to_host(int64_t staying) {
  for (RowColumn& column : columns_)
    if (column.numbers) column.memory.move_to_host(runtime_.compute_stream(), column.granules_to(staying));
}

bool RowArrays::has_numbers_on_host() const {
  return std::any_of(columns_.begin(), columns_.end(), [](const RowColumn& column) {
    return column.numbers && column.memory.bytes() > column.memory.device_bytes();
  });
}

int64_t RowArrays::number_bytes_on_device() const {
  int64_t bytes = 0;
  for (const RowColumn& column : columns_)
    if (column.numbers) bytes += static_cast<int64_t>(column.memory.device_bytes());
  return bytes;
}

void RowArrays::for_listed(StreamRef stream, std::span<const int32_t> rows,
                           const std::function<void(Context&, const int32_t*, int64_t)>& body) const {
  Context ctx(runtime_, stream);
  if (!runtime_.device().is_cuda()) return body(ctx, rows.data(), static_cast<int64_t>(rows.size()));
  const size_t most = staging_->bytes() / sizeof(int32_t);
  auto* const numbers = reinterpret_cast<int32_t*>(staging_->data());
  for (size_t first = 0; first < rows.size(); first += most) {
    const std::span<const int32_t> some = rows.subspan(first, std::min(most, rows.size() - first));
    copy_bytes(ctx.stream(), numbers, some.data(), some.size_bytes());
    body(ctx, numbers, static_cast<int64_t>(some.size()));
  }
  ctx.stream().synchronize();
}

void RowArrays::copy_out(const RowColumn& column, std::span<const int32_t> rows, std::byte* to) const {
  const StreamRef stream = runtime_.compute_stream();
  Context ctx(runtime_, stream);
  const auto bytes = static_cast<size_t>(column.bytes_per_row);
  const size_t whole = staging_->bytes(), block = (whole - 16) / (bytes + sizeof(int32_t));
  HCTR_EXPECT(block > 0, label_, ": rows of ", bytes, " bytes");
  // Layout of the staging buffer: the rows, then their row numbers, which start at a multiple of 16 bytes.
  auto* numbers = reinterpret_cast<int32_t*>(staging_->data() + (block * bytes + 15) / 16 * 16);
  for (size_t first = 0; first < rows.size(); first += block) {
    const std::span<const int32_t> some = rows.subspan(first, std::min(block, rows.size() - first));
    copy_bytes(stream, numbers, some.data(), some.size_bytes());
    if (places()) ops::find_places(ctx, places(), static_cast<int64_t>(some.size()), numbers);
    ops::copy_rows(ctx, numbers, static_cast<int64_t>(some.size()), column.memory.data(), column.bytes_per_row,
                   staging_->data());
    copy_bytes(stream, to + first * bytes, staging_->data(), some.size() * bytes);
    stream.synchronize();
  }
}

void RowArrays::read(StreamRef stream, const RowColumn& column, int64_t first, std::span<std::byte> to) const {
  if (places()) return read_places(stream, column, first, to);
  column.memory.read(stream, static_cast<size_t>(column.bytes_per_row + first), to.data(), to.size());
}

void RowArrays::read_places(StreamRef stream, const RowColumn& column, int64_t first, std::span<std::byte> to) const {
  constexpr int64_t kBlockBytes = int64_t{4} << 20;
  const int64_t bytes = column.bytes_per_row, end = first + static_cast<int64_t>(to.size());
  const int64_t first_row = 1 + first / bytes, rows = 1 + (end - 1) / bytes - first_row + 1;
  const int64_t block = std::clamp<int64_t>(kBlockBytes / bytes, 1, rows);
  const Buffer gathered(runtime_.device(), static_cast<size_t>(block * bytes));
  std::vector<std::byte> on_host(gathered.bytes());
  Context ctx(runtime_, stream);
  for (int64_t row = first_row; row < first_row + rows; row += block) {
    const int64_t count = std::min(block, first_row + rows - row);
    ops::copy_rows(ctx, places() + row, count, column.memory.data(), bytes, gathered.data());
    copy_bytes(stream, on_host.data(), gathered.data(), static_cast<size_t>(count * bytes));
    stream.synchronize();
    const int64_t begins = (row - 1) * bytes, from = std::max(begins, first),
                  until = std::min(begins + count * bytes, end);
    std::copy(on_host.begin() + (from - begins), on_host.begin() + (until - begins), to.begin() + (from - first));
  }
}

}  // namespace hctr
