// Lists keys without a row, compared with a loop over the batch on the host.
#include "ops/embedding/list_missing_keys.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

struct MissingCase {
  const char* name;
  int64_t slots, samples, key_capacity;
  double missing;  // fraction of keys without a row
  bool numbered;   // whether slot numbers differ from 0, 1, ...
};

/// Checks bags of 0 to 3 keys, truncated at the capacity.
void check_missing_keys(Device device, const MissingCase& row) {
  SCOPED_TRACE(cat(to_string(device), ": ", row.name));
  Runtime& runtime = runtime_of(device);
  Context ctx(runtime, runtime.compute_stream());
  std::mt19937_64 random(5);
  const auto capacity = static_cast<size_t>(row.key_capacity);
  std::vector<int64_t> keys(capacity, 77);
  std::vector<int32_t> offsets = {0}, rows(capacity, 0), numbers;
  for (int64_t bag = 0; bag < row.slots * row.samples; ++bag)
    offsets.push_back(std::min(static_cast<int32_t>(capacity), offsets.back() + static_cast<int32_t>(random() % 4)));
  for (int64_t s = 0; s < row.slots; ++s) numbers.push_back(static_cast<int32_t>(s * 3 + 5));
  std::vector<ops::MissingKey> expected;
  for (int64_t s = 0; s < row.slots; ++s)
    for (int32_t p = offsets[static_cast<size_t>(s * row.samples)];
         p < offsets[static_cast<size_t>((s + 1) * row.samples)]; ++p) {
      const auto at = static_cast<size_t>(p);
      keys[at] = static_cast<int64_t>(random() % 50) - 25;
      const bool missing = static_cast<double>(random() % 1000) < row.missing * 1000;
      rows[at] = missing ? 0 : static_cast<int32_t>(1 + random() % 100);
      if (missing)
        expected.push_back({keys[at], row.numbered ? numbers[static_cast<size_t>(s)] : static_cast<int32_t>(s), p});
    }

  const auto on_device = [&]<class T>(const std::vector<T>& values) {
    Buffer buffer(device, std::max<size_t>(1, values.size() * sizeof(T)));
    copy_bytes(ctx.stream(), buffer.data(), values.data(), values.size() * sizeof(T));
    ctx.stream().synchronize();
    return buffer;
  };
  const Buffer keys_ = on_device(keys), offsets_ = on_device(offsets), rows_ = on_device(rows),
               numbers_ = on_device(numbers);
  const Buffer scratch(device, std::max<size_t>(1, ops::missing_scratch_bytes(device, row.key_capacity)));
  // stored in the host's format: count, then keys
  const HostBuffer found(device, (capacity + 2) * sizeof(ops::MissingKey));
  auto* const list = reinterpret_cast<ops::MissingKey*>(found.data()) + 1;
  auto* const count = reinterpret_cast<int32_t*>(found.data());
  list[expected.size()] = {-123, -123, -123};
  for (int run = 0; run < 2; ++run) {  // in the second run, scratch memory is not zero
    *count = -1;
    ops::list_missing_keys(ctx,
                           {.keys = reinterpret_cast<const int64_t*>(keys_.data()),
                            .offsets = reinterpret_cast<const int32_t*>(offsets_.data()),
                            .slots = row.slots,
                            .samples = row.samples,
                            .key_capacity = row.key_capacity,
                            .columns = row.slots,
                            .slot_numbers = row.numbered ? reinterpret_cast<const int32_t*>(numbers_.data()) : nullptr},
                           reinterpret_cast<const int32_t*>(rows_.data()), scratch.data(), list, count);
    ctx.stream().synchronize();
    ASSERT_EQ(*count, static_cast<int32_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(list[i].key, expected[i].key) << i;
      ASSERT_EQ(list[i].slot, expected[i].slot) << i;
      ASSERT_EQ(list[i].at, expected[i].at) << i;
    }
    EXPECT_EQ(list[expected.size()].key, -123) << "what lies behind the list";
  }
}

TEST(MissingKeysTest, ListsTheKeysWithoutARowInTheOrderOfTheBatch) {
  for (const Device device : devices())
    for (const MissingCase& row :
         {MissingCase{"no key", 1, 4, 0, 0, false}, MissingCase{"none missing", 3, 5, 60, 0, false},
          MissingCase{"all missing", 3, 5, 60, 1, false},
          MissingCase{"one tile, partly filled", 8, 100, 2000, 0.3, true},
          MissingCase{"many tiles, the last of them without a key", 7, 3001, 60000, 0.1, false},
          MissingCase{"few missing in many tiles", 4, 20000, 131072, 0.002, true},
          MissingCase{"all missing in many tiles", 1, 50000, 75000, 1, false}})
      check_missing_keys(device, row);
}

}  // namespace
}  // namespace hctr::test
