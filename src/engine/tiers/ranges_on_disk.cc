#include "engine/tiers/ranges_on_disk.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/rows/key_reports.h"
#include "engine/spec/setting_words.h"

namespace hctr {

RangesOnDisk::RangesOnDisk(RowMemory& budget, RowsInMemory& rows, RowDiskTier& disk, DirectKeys keys)
    : budget_(budget),
      arrays_(rows.arrays()),
      index_(rows.index()),
      disk_(disk),
      runtime_(arrays_.runtime()),
      keys_(std::move(keys)) {}

void RangesOnDisk::set_owners(int64_t first, int64_t count) {
  std::vector<int64_t> keys(static_cast<size_t>(count));
  std::vector<int32_t> slots(arrays_.slots() ? keys.size() : 0), places(arrays_.base_places() ? keys.size() : 0);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const ops::RowOwner owner = keys_.index().owner(first + i);
    keys[at] = owner.key;
    if (!slots.empty()) slots[at] = owner.slot;
    if (!places.empty()) places[at] = static_cast<int32_t>((first + i) & DiskRows::kMostBaseRows);
  }
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, arrays_.keys() + 1, keys.data(), keys.size() * sizeof(int64_t));
  copy_bytes(stream, arrays_.slots() ? arrays_.slots() + 1 : nullptr, slots.data(), slots.size() * sizeof(int32_t));
  copy_bytes(stream, arrays_.base_places() ? arrays_.base_places() + 1 : nullptr, places.data(),
             places.size() * sizeof(int32_t));
  stream.synchronize();
}

void RangesOnDisk::create() {
  const int64_t rows = keys_.rows(), in_memory = std::min(rows, arrays_.capacity());
  // Rows are evicted before other rows are promoted, so for a moment all rows may be on disk.
  if (const int64_t bytes = rows * disk_.disk().record_bytes(); bytes > budget_.disk_room())
    throw Error(Kind::io,
                cat(arrays_.label(), ": the ", rows, " rows of ", setting_words(budget_.limits()).row_numbers,
                    " take up to ", bytes, " bytes in '", budget_.limits().disk_folder, "', but only ",
                    budget_.disk_room(), " of ", budget_.limits().disk, " are left; ",
                    setting_words(budget_.limits()).disk_limit, ", or the free space there, must be at least ",
                    budget_.limits().disk - budget_.disk_room() + bytes, " bytes for each rank"));
  Context ctx(runtime_, runtime_.compute_stream());
  ops::IndexState now = index_.state();
  const auto make = [&](int64_t first, int64_t count) {
    set_owners(first, count);
    now.rows = static_cast<uint32_t>(count);
    now.ready = now.finished = 0;
    index_.set_state(now);
    ops::init_new_rows(ctx, index_.view(), arrays_.init(), arrays_.data());
    ctx.stream().synchronize();
  };
  const auto block = std::min(static_cast<int64_t>(disk_.block_rows()), arrays_.capacity());
  std::vector<int32_t> numbers(static_cast<size_t>(block));
  std::iota(numbers.begin(), numbers.end(), 1);
  for (int64_t first = in_memory + 1; first <= rows; first += block) {
    const int64_t count = std::min(block, rows + 1 - first);
    make(first, count);
    size_t left = 0;
    disk_.put_out(std::span(numbers).first(static_cast<size_t>(count)), left);
  }
  make(1, in_memory);
  now.ready = now.finished = now.rows;
  index_.set_state(now);
  index_.build();
}

std::vector<int64_t> RangesOnDisk::order(int64_t rows, std::span<const DiskRows::Row> on_disk) const {
  std::vector<int64_t> order(static_cast<size_t>(keys_.rows()));
  std::vector<int64_t> keys(static_cast<size_t>(rows));
  std::vector<int32_t> slots(arrays_.slots() ? keys.size() : 0);
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, keys.data(), arrays_.keys() + 1, keys.size() * sizeof(int64_t));
  copy_bytes(stream, slots.data(), arrays_.slots() ? arrays_.slots() + 1 : nullptr, slots.size() * sizeof(int32_t));
  stream.synchronize();
  const ops::DirectIndex index = keys_.index();
  const auto put = [&](int64_t key, int32_t slot, int64_t row) {
    const int32_t number = index.row(key, slot);
    HCTR_EXPECT(number > 0 && order[static_cast<size_t>(number - 1)] == 0, arrays_.label(), ": key ", key, " has row ",
                number);
    order[static_cast<size_t>(number - 1)] = row;
  };
  for (size_t i = 0; i < keys.size(); ++i) put(keys[i], slots.empty() ? 0 : slots[i], static_cast<int64_t>(i) + 1);
  for (size_t i = 0; i < on_disk.size(); ++i) put(on_disk[i].key, on_disk[i].slot, -1 - static_cast<int64_t>(i));
  HCTR_EXPECT(keys.size() + on_disk.size() == order.size(), arrays_.label(), ": ", keys.size(), " rows in memory and ",
              on_disk.size(), " on the disk of ", order.size());
  return order;
}

void RangesOnDisk::check(std::span<const ops::MissingKey> missing, NewKeys new_keys) const {
  for (const ops::MissingKey& key : missing)
    if (keys_.index().row(key.key, index_.view().identity_slot(key.slot)) == 0)
      throw_key_outside(arrays_.label(), new_keys == NewKeys::get_none, keys_.outside(key.key, key.slot),
                        setting_words(budget_.limits()));
}

}  // namespace hctr
