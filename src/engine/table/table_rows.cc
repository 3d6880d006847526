// Export and import of the rows of a table.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/device/copy_bytes.h"
#include "engine/table/table.h"
#include "ops/embedding/row_swap.h"

namespace hctr {
namespace {

constexpr int64_t kVectorBlockBytes = int64_t{2} << 20;  // bytes of vectors per block

template <class T>
std::vector<T> device_array(StreamRef stream, const T* from, int64_t count) {
  std::vector<T> out(static_cast<size_t>(count));
  copy_bytes(stream, out.data(), from, out.size() * sizeof(T));
  stream.synchronize();
  return out;
}

/// The rows of a block that are on disk: rows[i] is at position at[i] of the block.
struct RowsOnDisk {
  const RowDiskTier* disk;
  std::vector<size_t> at{};
  std::vector<DiskRows::Row> rows{};
};

/// Buffers for gathered rows on the device and on the host.
template <class T>
class Staging {
 public:
  Staging(Context& ctx, int64_t rows, int64_t width)
      : buffer_(ctx.runtime().held_memory(), ctx.device(), static_cast<size_t>(rows * width) * sizeof(T)),
        width_(width) {}

  Tensor tensor(int64_t rows) const {
    return Tensor(buffer_.data(), TensorSpec(kDTypeOf<T>, {rows, width_}), buffer_.device());
  }
  /// Gathers values of rows to the host. `on_disk`: those rows of the block that are on disk. `name`: the name of the
  /// column.
  std::span<const T> gather(Context& ctx, const int32_t* rows, int64_t count, const ops::RowMemory& table,
                            const RowsOnDisk& on_disk, std::string_view name) {
    ops::gather_rows(ctx, rows, table, tensor(count));
    host_ = to_host<T>(ctx.stream(), tensor(count));
    if (!on_disk.rows.empty()) take_from_disk(table.dtype, on_disk, name);
    return host_;
  }
  void scatter(Context& ctx, const int32_t* rows, std::span<const T> from, std::span<const int64_t> order,
               const ops::RowMemory& table) {
    host_.clear();
    for (const int64_t i : order) host_.insert(host_.end(), from.begin() + i * width_, from.begin() + (i + 1) * width_);
    const Tensor x = tensor(static_cast<int64_t>(order.size()));
    from_host(ctx.stream(), x, host_);
    ops::scatter_rows(ctx, rows, x, table);
    ctx.stream().synchronize();
  }

 private:
  void take_from_disk(DType stored, const RowsOnDisk& on_disk, std::string_view name) {
    const std::vector<std::byte> values = on_disk.disk->values(name, on_disk.rows);
    const auto width = static_cast<size_t>(width_);
    const auto take = [&]<class Stored>(Stored) {
      const auto* from = reinterpret_cast<const Stored*>(values.data());
      for (const size_t at : on_disk.at)
        for (size_t e = 0; e < width; ++e) host_[at * width + e] = static_cast<T>(*from++);
    };
    if constexpr (std::is_same_v<T, float>)
      dispatch_float(stored, [&]<class Stored>() { take(Stored{}); });
    else
      take(T{});
  }

  HeldBuffer buffer_;
  int64_t width_;
  std::vector<T> host_;
};

ops::RowMemory words_of(void* column) { return {column, DType::i32}; }

/// Reinterprets 32-bit words as unsigned, or as signed.
std::span<const uint32_t> as_unsigned(std::span<const int32_t> words) {
  return {reinterpret_cast<const uint32_t*>(words.data()), words.size()};
}
std::span<const int32_t> as_signed(std::span<const uint32_t> words) {
  return {reinterpret_cast<const int32_t*>(words.data()), words.size()};
}

/// The indices 0, 1, ... sorted by (slot, key). A row's pieces, which have separate slots, are consecutive.
std::vector<int64_t> sorted_order(std::span<const int64_t> keys, std::span<const int32_t> slots, int64_t pieces) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    if (slots.empty()) return keys[i] < keys[j];
    return std::tuple(slots[i] / pieces, keys[i], slots[i]) < std::tuple(slots[j] / pieces, keys[j], slots[j]);
  });
  return order;
}

}  // namespace

std::vector<SlotKey> EmbeddingTable::sorted_keys() {
  HCTR_EXPECT(!store_.rows().direct(), "table '", spec_.name, "' has direct keys");
  const int64_t count = store_.tiers().close_up(), first_row = hash_index().first_row;
  const StreamRef stream = runtime_.compute_stream();
  const bool by_slot = spec_.identity_by_slot;
  const auto keys = device_array(stream, hash_index().row_keys + first_row, count);
  const auto slots = device_array(stream, by_slot ? hash_index().row_slots + first_row : nullptr, by_slot ? count : 0);
  std::vector<SlotKey> all;
  // the first piece suffices, because all pieces of a row are added and removed together
  for (size_t i = 0; i < keys.size(); ++i)
    if (!by_slot || slots[i] % spec_.pieces == 0)
      all.emplace_back(by_slot ? static_cast<int32_t>(slots[i] / spec_.pieces) : 0, keys[i]);
  if (const DiskRows* const disk = disk_rows())
    for (const DiskRows::Row& row : disk->sorted_rows())
      if (!by_slot || row.slot % spec_.pieces == 0)
        all.emplace_back(by_slot ? static_cast<int32_t>(row.slot / spec_.pieces) : 0, row.key);
  std::sort(all.begin(), all.end());
  return all;
}

void EmbeddingTable::note_model() {
  if (spec_.policy.removes_rows()) keys_of_model_ = sorted_keys();
  RowDiskTier* const disk = store_.tiers().disk();
  store_.tiers().changes().start_delta(disk ? &disk->disk() : nullptr);
}

std::vector<SlotKey> EmbeddingTable::removed_keys() {
  std::vector<SlotKey> removed;
  if (keys_of_model_.empty()) return removed;
  const std::vector<SlotKey> now = sorted_keys();
  std::set_difference(keys_of_model_.begin(), keys_of_model_.end(), now.begin(), now.end(),
                      std::back_inserter(removed));
  return removed;
}

int64_t EmbeddingTable::bytes_to_export(bool with_states, int ranks) const {
  // bytes of key, slot and position in the order
  constexpr int64_t kOfRow = sizeof(int64_t) + sizeof(int32_t) + sizeof(int64_t);
  // A growing std::vector holds its old elements and a new capacity of up to twice their size, together a factor of 3.
  constexpr int64_t kOfRowOnDisk = static_cast<int64_t>(sizeof(DiskRow)) + 3 * kOfRow;
  // Copies of a block exist on the device, on the host, in transit to rank 0, merged on rank 0, in a file, and while
  // vectors grow.
  const int64_t copies = 12 + 4 * ranks;
  const int64_t on_disk = disk_rows() ? disk_rows()->rows() : 0, states = with_states ? spec_.optimizer.states() : 0;
  return kOfRow * arrays().capacity() + kOfRowOnDisk * on_disk + copies * kVectorBlockBytes * (1 + states);
}

int64_t EmbeddingTable::device_bytes_to_export(bool with_states) const {
  constexpr int64_t kOfWords = 4;  // last_step, last_seen, occurrences and row numbers
  return kVectorBlockBytes * (1 + kOfWords + (with_states ? spec_.optimizer.states() : 0));
}

void EmbeddingTable::load_export_kernels() {
  Context ctx(runtime_, runtime_.compute_stream());
  const ops::RowData& data = arrays().data();
  const Buffer row(ctx.device(), sizeof(int32_t));  // row 0, which every table has
  const auto* rows = reinterpret_cast<const int32_t*>(row.data());
  const auto load = [&]<class T>(Staging<T> staging, const ops::RowMemory& from) {
    if (from) ops::gather_rows(ctx, rows, from, staging.tensor(1));
  };
  load(Staging<float>(ctx, 1, spec_.dim), data.vectors);
  for (int s = 0; s < spec_.optimizer.states(); ++s) load(Staging<float>(ctx, 1, data.state_dim), data.states[s]);
  for (void* const words : {static_cast<void*>(data.last_step), static_cast<void*>(arrays().access_stats().last_seen),
                            static_cast<void*>(arrays().access_stats().occurrences)})
    load(Staging<int32_t>(ctx, 1, 1), words_of(words));
  ctx.stream().synchronize();
}

void EmbeddingTable::export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) {
  const int64_t count = store_.tiers().close_up();
  const StreamRef stream = runtime_.compute_stream();
  const bool by_slot = spec_.identity_by_slot, by_index = !store_.rows().direct();
  const int64_t first_row = hash_index().first_row;
  // For direct keys with unsplit rows both stay empty: row numbers then have the order of (slot, key).
  std::vector<int64_t> keys, order;
  std::vector<int32_t> slots;
  if (by_index) {
    keys = device_array(stream, hash_index().row_keys + first_row, count);
    slots = device_array(stream, by_slot ? hash_index().row_slots + first_row : nullptr, by_slot ? count : 0);
  } else if (spec_.pieces > 1) {
    for (int64_t row = 1; row <= count; ++row) {
      const ops::RowOwner owner = spec_.direct.index().owner(row);
      keys.push_back(owner.key);
      slots.push_back(owner.slot);
    }
  }
  const size_t in_memory = keys.size();
  std::vector<bool> has_changed;  // at first only for rows on disk; the code below inserts rows in memory at the front
  if (const DiskRows* const disk = disk_rows())
    for (const DiskRows::Row& row : disk->sorted_rows()) {
      keys.push_back(row.key);
      if (by_slot) slots.push_back(row.slot);
      has_changed.push_back((row.marks & ops::kChangedSinceModel) != 0);
    }
  order = sorted_order(keys, slots, spec_.pieces);
  std::optional<std::vector<int32_t>> changed;
  if (const RowChanges& changes = store_.tiers().changes(); wanted.changed && changes.known_since_model())
    changed = changes.since_model(count + store_.rows().index().shared_rows());
  if (changed && !order.empty()) {
    const int64_t first = by_index ? first_row : 1;
    has_changed.insert(has_changed.begin(), static_cast<size_t>(count), false);
    for (const int32_t row : *changed)
      if (row >= first) has_changed[static_cast<size_t>(row - first)] = true;
    std::erase_if(order, [&](int64_t row) { return !has_changed[static_cast<size_t>(row)]; });
    if (order.empty()) return;
  }
  /// Returns the owner and the row number of the i-th row in (slot, key) order.
  const RowAt at = [&](int64_t i) -> std::pair<ops::RowOwner, int32_t> {
    if (order.empty()) {
      const int32_t row = changed ? (*changed)[static_cast<size_t>(i)] : static_cast<int32_t>(i + 1);
      return {spec_.direct.index().owner(row), row};
    }
    const auto row = static_cast<size_t>(order[static_cast<size_t>(i)]);
    if (by_index && row >= in_memory) return {{keys[row], by_slot ? slots[row] : 0}, 0};
    return {{keys[row], by_slot ? slots[row] : 0},
            static_cast<int32_t>(static_cast<int64_t>(row) + (by_index ? first_row : 1))};
  };
  const size_t some = order.empty() && changed ? changed->size() : order.size();
  emit_rows(order.empty() && !changed ? count : static_cast<int64_t>(some), at, wanted.states, sink);
}

void EmbeddingTable::emit_rows(int64_t count, const RowAt& at, bool with_states,
                               const std::function<void(const RowBlock&)>& sink) {
  Context ctx(runtime_, runtime_.compute_stream());
  const ops::RowData& data = arrays().data();
  const bool by_slot = spec_.identity_by_slot;
  const int64_t block = std::clamp<int64_t>(kVectorBlockBytes / (spec_.dim * 4), 1, std::max<int64_t>(count, 1));
  Staging<float> vectors(ctx, block, spec_.dim);
  std::vector<Staging<float>> states;
  for (int s = 0; with_states && s < spec_.optimizer.states(); ++s) states.emplace_back(ctx, block, data.state_dim);
  Staging<int32_t> last_steps(ctx, with_states ? block : 0, 1);
  ops::AccessStats stats = spec_.policy.keeps_access_stats() ? arrays().access_stats() : ops::AccessStats{};
  // Do not export statistics to models if only the disk tier needs them.
  if (!spec_.policy.tracks_last_step()) stats.last_seen = nullptr;
  if (!spec_.policy.counts_occurrences()) stats.occurrences = nullptr;
  Staging<int32_t> last_seen(ctx, stats.last_seen ? block : 0, 1), occurrences(ctx, stats.occurrences ? block : 0, 1);
  const HeldBuffer rows(ctx.runtime().held_memory(), ctx.device(), static_cast<size_t>(block) * sizeof(int32_t));
  const auto* device_rows = reinterpret_cast<const int32_t*>(rows.data());
  for (int64_t first = 0; first < count; first += block) {
    const int64_t n = std::min(block, count - first);
    std::vector<int32_t> block_rows, block_slots;
    std::vector<int64_t> block_keys;
    RowsOnDisk on_disk{store_.tiers().disk()};
    for (int64_t i = first; i < first + n; ++i) {
      const auto [owner, row] = at(i);
      block_rows.push_back(row);
      block_keys.push_back(owner.key);
      if (by_slot) block_slots.push_back(owner.slot);
      if (row != 0) continue;
      const DiskRows::Row* const there = disk_rows() ? disk_rows()->find(owner.key, owner.slot) : nullptr;
      HCTR_EXPECT(there, "table '", spec_.name, "': key ", owner.key, " has no row");
      on_disk.at.push_back(static_cast<size_t>(i - first));
      on_disk.rows.push_back(*there);
    }
    copy_bytes(ctx.stream(), rows.data(), block_rows.data(), block_rows.size() * sizeof(int32_t));
    if (arrays().places()) ops::find_places(ctx, arrays().places(), n, reinterpret_cast<int32_t*>(rows.data()));
    RowBlock out{
        block_keys, block_slots, vectors.gather(ctx, device_rows, n, data.vectors, on_disk, "vectors"), {}, {}};
    for (size_t s = 0; s < states.size(); ++s)
      out.states[s] = states[s].gather(ctx, device_rows, n, data.states[s], on_disk, cat("state", s));
    const auto words = [&](Staging<int32_t>& staging, void* column, std::string_view name) {
      return staging.gather(ctx, device_rows, n, words_of(column), on_disk, name);
    };
    if (with_states && data.last_step) out.last_steps = words(last_steps, data.last_step, "last_step");
    if (stats.last_seen) out.last_seen = as_unsigned(words(last_seen, stats.last_seen, "last_seen"));
    if (stats.occurrences) out.occurrences = as_unsigned(words(occurrences, stats.occurrences, "occurrences"));
    sink(out);
  }
}

void EmbeddingTable::import_rows(const RowBlock& block) {
  const bool by_slot = spec_.identity_by_slot;
  const size_t count = block.keys.size();
  HCTR_EXPECT((block.vectors.empty() || block.vectors.size() == count * static_cast<size_t>(spec_.dim)) &&
                  (!by_slot || block.slots.size() == count),
              "table '", spec_.name, "': ", count, " keys with ", block.slots.size(), " slots and ",
              block.vectors.size(), " elements");
  for (const std::span<const float> state : block.states)
    HCTR_EXPECT(state.empty() || state.size() == count * static_cast<size_t>(spec_.state_dim()), "table '", spec_.name,
                "': ", count, " keys with ", state.size(), " elements of a state");
  const std::vector<int64_t> order = sorted_order(block.keys, by_slot ? block.slots : std::span<const int32_t>(), 1);
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(order[i]);
    const int64_t slot = by_slot ? block.slots[at] : 0;
    if (slot < 0 || slot >= spec_.slots)
      throw Error(Kind::data, cat("table '", spec_.name, "': key ", block.keys[at], " belongs to slot ",
                                  slot / spec_.pieces, ", but there are only ", spec_.slots / spec_.pieces, " slots"));
    if (!spec_.direct.empty() && spec_.direct.index().row(block.keys[at], static_cast<int32_t>(slot)) == 0)
      throw Error(Kind::data, cat("table '", spec_.name, "': ", spec_.direct.outside(block.keys[at], slot)));
    if (i == 0) continue;
    const auto before = static_cast<size_t>(order[i - 1]);
    if (block.keys[at] == block.keys[before] && (!by_slot || block.slots[at] == block.slots[before]))
      throw Error(Kind::data, cat("table '", spec_.name, "': key ", block.keys[at],
                                  by_slot ? cat(" of slot ", slot / spec_.pieces) : "", " occurs twice"));
  }
  store_.tiers().changes().forget();
  Context ctx(runtime_, runtime_.compute_stream());
  const auto chunk = std::min<size_t>(static_cast<size_t>(store_.rows().batches().keys),
                                      static_cast<size_t>(std::max<int64_t>(kVectorBlockBytes / (spec_.dim * 4), 1)));
  for (size_t first = 0; first < count; first += chunk)
    import_chunk(block, std::span(order).subspan(first, std::min(chunk, count - first)), ctx);
}

void EmbeddingTable::import_chunk(const RowBlock& block, std::span<const int64_t> order, Context& ctx) {
  const auto n = static_cast<int64_t>(order.size());
  const ops::HashIndex& index = hash_index();
  const ops::RowData& data = arrays().data();
  store_.tiers().finished_rows();  // waits, because prepare() must not insert keys concurrently
  store_.reserve_rows();

  // In the order of slots, the keys are a batch of one sample.
  std::vector<int64_t> keys;
  std::vector<int32_t> offsets(static_cast<size_t>(spec_.slots) + 1, 0);
  for (const int64_t i : order) {
    keys.push_back(block.keys[static_cast<size_t>(i)]);
    ++offsets[spec_.identity_by_slot ? static_cast<size_t>(block.slots[static_cast<size_t>(i)]) + 1 : 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());

  const Device device = ctx.device();
  const Buffer device_keys(device, keys.size() * sizeof(int64_t)),
      device_offsets(device, offsets.size() * sizeof(int32_t)), device_rows(device, keys.size() * sizeof(int32_t)),
      rows_after(device, sizeof(uint32_t));
  copy_bytes(ctx.stream(), device_keys.data(), keys.data(), device_keys.bytes());
  copy_bytes(ctx.stream(), device_offsets.data(), offsets.data(), device_offsets.bytes());
  const ops::KeyBatch batch{reinterpret_cast<const int64_t*>(device_keys.data()),
                            reinterpret_cast<const int32_t*>(device_offsets.data()), spec_.slots, 1, n};
  auto* rows = reinterpret_cast<int32_t*>(device_rows.data());
  if (store_.rows().direct()) {
    find_directly(ctx, batch, false, rows);
  } else {
    store_.tiers().bring_rows(ctx, batch, rows, NewKeys::get_rows);
    if (RowDiskTier* const disk = store_.tiers().disk()) disk->keep_new_rows();
    ops::index_insert(ctx, index, batch, rows);
    ops::init_new_rows(ctx, index, arrays().init(), data);
  }
  if (!block.vectors.empty()) Staging<float>(ctx, n, spec_.dim).scatter(ctx, rows, block.vectors, order, data.vectors);
  for (int s = 0; s < spec_.optimizer.states(); ++s)
    if (!block.states[s].empty())
      Staging<float>(ctx, n, data.state_dim).scatter(ctx, rows, block.states[s], order, data.states[s]);
  const auto scatter_words = [&](void* column, std::span<const int32_t> words) {
    if (column && !words.empty()) Staging<int32_t>(ctx, n, 1).scatter(ctx, rows, words, order, words_of(column));
  };
  scatter_words(data.last_step, block.last_steps);
  scatter_words(arrays().access_stats().last_seen, as_signed(block.last_seen));
  scatter_words(arrays().access_stats().occurrences, as_signed(block.occurrences));
  auto* after = reinterpret_cast<uint32_t*>(rows_after.data());
  ops::index_close_batch(ctx, index, after, store_.rows().index().host_word());
  ops::index_finish_step(ctx, index, after);
  ctx.stream().synchronize();
  store_.check_limit();
}

}  // namespace hctr
