// Checks for the host which keys have rows.
#include <algorithm>
#include <numeric>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/table/table.h"

namespace hctr {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 20;

}  // namespace

std::vector<uint8_t> EmbeddingTable::have_rows(std::span<const SlotKey> keys) {
  std::vector<uint8_t> found(keys.size(), store_.rows().direct().has_value());
  for (size_t first = 0; !store_.rows().direct() && first < keys.size(); first += kMostAtOnce) {
    const size_t count = std::min(kMostAtOnce, keys.size() - first);
    find_on_host(keys.subspan(first, count), std::span(found).subspan(first, count));
  }
  return found;
}

void EmbeddingTable::find_on_host(std::span<const SlotKey> keys, std::span<uint8_t> found) {
  const auto slots = static_cast<size_t>(spec_.slots_of_batch());
  const auto number_of = [&](size_t place) {
    return spec_.batch_slots ? (*spec_.batch_slots)[place] : static_cast<int32_t>(place);
  };
  // [slot]: index of the slot in a batch. If rows are split, this is the index of any piece of the slot, because all
  // pieces of a row exist together.
  std::vector<std::optional<size_t>> places(static_cast<size_t>(spec_.slots / spec_.pieces));
  for (size_t place = slots; place-- > 0;) places[static_cast<size_t>(number_of(place) / spec_.pieces)] = place;
  const auto place_of = [&](int32_t slot) {
    if (spec_.identity_by_slot) return places.at(static_cast<size_t>(slot));
    return slots > 0 ? std::optional<size_t>(0) : std::nullopt;  // nullopt if this rank has no rows
  };
  // Group the keys by slot. In this order the keys are a batch of one sample.
  std::vector<std::vector<size_t>> by_place(slots);
  for (size_t i = 0; i < keys.size(); ++i)
    if (const auto place = place_of(keys[i].first)) by_place.at(*place).push_back(i);
  std::vector<int64_t> batch_keys;
  std::vector<int32_t> offsets = {0};
  std::vector<size_t> order;
  for (const std::vector<size_t>& indices : by_place) {
    for (const size_t i : indices) batch_keys.push_back(keys[i].second);
    order.insert(order.end(), indices.begin(), indices.end());
    offsets.push_back(static_cast<int32_t>(order.size()));
  }
  if (order.empty()) return;

  const StreamRef stream = runtime_.compute_stream();
  Context ctx(runtime_, stream);
  const Device device = ctx.device();
  const Buffer device_keys(device, batch_keys.size() * sizeof(int64_t)),
      device_offsets(device, offsets.size() * sizeof(int32_t)), device_rows(device, order.size() * sizeof(int32_t));
  copy_bytes(stream, device_keys.data(), batch_keys.data(), device_keys.bytes());
  copy_bytes(stream, device_offsets.data(), offsets.data(), device_offsets.bytes());
  const ops::KeyBatch batch{.keys = reinterpret_cast<const int64_t*>(device_keys.data()),
                            .offsets = reinterpret_cast<const int32_t*>(device_offsets.data()),
                            .slots = spec_.slots_of_batch(),
                            .samples = 1,
                            .key_capacity = static_cast<int64_t>(order.size()),
                            .slot_numbers = slot_numbers_};
  ops::index_find(ctx, hash_index(), batch, reinterpret_cast<int32_t*>(device_rows.data()));
  std::vector<int32_t> rows(order.size());
  copy_bytes(stream, rows.data(), device_rows.data(), device_rows.bytes());
  stream.synchronize();
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& [slot, key] = keys[order[i]];
    const int32_t number = spec_.identity_by_slot ? number_of(*place_of(slot)) : 0;
    found[order[i]] = rows[i] != 0 || (may_be_on_disk() && disk_rows()->find(key, number) != nullptr);
  }
}

}  // namespace hctr
