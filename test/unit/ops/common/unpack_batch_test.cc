#include "ops/common/unpack_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr int64_t kSamples = 37, kSlots = 35;

/// An uploaded input, and its expected unpacked form.
struct PackedInput {
  std::vector<int64_t> keys;
  std::vector<int32_t> offsets;
};

/// `many`: number of inputs, more than one kernel accepts. Every third input has one key per slot; half of these inputs
/// are ordered by sample. Every second input has 64-bit keys. `width`: dense values per row, if not 0. `stride`,
/// `dtype`: row stride and dtype of the unpacked dense values.
void expect_unpacked(Device device, int many, int64_t width = 0, int64_t stride = 0, DType dtype = DType::f32) {
  std::vector<std::byte> batch(256);
  std::vector<PackedKeys> packed(static_cast<size_t>(many));
  std::vector<PackedInput> expected(static_cast<size_t>(many));
  const auto append = [&](const void* from, size_t bytes) {
    const size_t at = batch.size();
    batch.resize((at + bytes + 255) / 256 * 256);
    if (bytes > 0) std::memcpy(batch.data() + at, from, bytes);
    return static_cast<int64_t>(at);
  };
  for (size_t i = 0; i < packed.size(); ++i) {
    PackedInput& to = expected[i];
    const bool ones = i % 3 == 0, wide = i % 2 == 1;
    const int64_t rows = 30 + static_cast<int64_t>(i % 4);
    for (int64_t bag = 0; bag < kSlots * kSamples; ++bag) {
      to.offsets.push_back(static_cast<int32_t>(to.keys.size()));
      const int64_t count = bag % kSamples >= rows ? 0
                            : ones                 ? 1
                                   : static_cast<int64_t>(mix64(i * 1000 + static_cast<uint64_t>(bag)) % 3);
      for (int64_t k = 0; k < count; ++k) {
        const uint64_t key = mix64(i + 7 * to.keys.size());
        to.keys.push_back(static_cast<int64_t>(wide ? key : key >> 32));
      }
    }
    to.offsets.push_back(static_cast<int32_t>(to.keys.size()));
    const bool sign_extends = !wide && i % 5 < 2, by_sample = ones && i % 4 > 1;
    if (sign_extends)
      for (int64_t& key : to.keys) key = static_cast<int32_t>(key);
    packed[i] = {.count = static_cast<int32_t>(to.keys.size()),
                 .rows = ones ? static_cast<int32_t>(rows) : 0,
                 .key_bytes = static_cast<int16_t>(wide ? 8 : 4),
                 .sign_extends = sign_extends,
                 .slots = by_sample ? static_cast<int32_t>(kSlots) : 0};
    if (!ones) packed[i].offsets = append(to.offsets.data(), to.offsets.size() * 4);
    std::vector<int64_t> stored(to.keys.size());
    for (size_t k = 0; k < stored.size(); ++k)
      stored[by_sample ? k % static_cast<size_t>(rows) * kSlots + k / static_cast<size_t>(rows) : k] = to.keys[k];
    const std::vector<uint32_t> narrow(stored.begin(), stored.end());
    packed[i].keys = wide ? append(stored.data(), stored.size() * 8) : append(narrow.data(), narrow.size() * 4);
  }
  std::vector<float> dense, expected_rows;
  // values fit into 8 bits
  for (int64_t i = 0; i < kSamples * width; ++i) dense.push_back(static_cast<float>(i % 200 + 1));
  for (int64_t i = 0; i < kSamples * stride; ++i)
    expected_rows.push_back(i % stride < width ? dense[static_cast<size_t>(i / stride * width + i % stride)] : 0);
  const int64_t dense_at = append(dense.data(), dense.size() * sizeof(float));
  const int64_t header = append(packed.data(), packed.size() * sizeof(PackedKeys));

  Runtime& runtime = runtime_of(device);
  const StreamRef stream = runtime.compute_stream();
  Context ctx(runtime, stream);
  const Buffer on_device(device, batch.size());
  copy_bytes(stream, on_device.data(), batch.data(), batch.size());
  std::vector<Buffer> memory;
  std::vector<ops::UnpackedKeys> inputs;
  const auto new_tensor = [&](DType type, int64_t count) {
    memory.emplace_back(device, static_cast<size_t>(count) * size_of(type));
    return Tensor(memory.back().data(), TensorSpec(type, {count}), device);
  };
  for (size_t i = 0; i < packed.size(); ++i)
    inputs.push_back({reinterpret_cast<const PackedKeys*>(on_device.data() + header) + i,
                      new_tensor(DType::i64, 2 * kSlots * kSamples), new_tensor(DType::i32, kSlots * kSamples + 1)});
  std::optional<ops::UnpackedRows> rows;
  if (width > 0) {
    const Tensor whole = new_tensor(dtype, kSamples * stride);
    dispatch_float(
        dtype, [&]<class T>() { from_host(stream, whole, std::vector<T>(expected_rows.size(), static_cast<T>(NAN))); });
    rows = {reinterpret_cast<const float*>(on_device.data() + dense_at),
            Tensor(whole.bytes(), TensorSpec(dtype, {kSamples, width}, stride), device)};
  }
  ops::unpack_batch(ctx, on_device.data(), inputs, rows, kSamples);
  if (rows) {
    const Tensor whole(rows->rows.bytes(), TensorSpec(dtype, {kSamples * stride}), device);
    dispatch_float(dtype, [&]<class T>() {
      const std::vector<T> found = to_host<T>(stream, whole);
      EXPECT_EQ(std::vector<float>(found.begin(), found.end()), expected_rows);
    });
  }
  for (size_t i = 0; i < packed.size(); ++i) {
    std::vector<int64_t> keys = to_host<int64_t>(stream, inputs[i].keys);
    keys.resize(expected[i].keys.size());
    EXPECT_EQ(keys, expected[i].keys) << "input " << i;
    EXPECT_EQ(to_host<int32_t>(stream, inputs[i].offsets), expected[i].offsets) << "input " << i;
  }
}

TEST(UnpackBatch, GivesTheKeysAndOffsetsThatWerePacked) {
  for (const Device device : devices()) expect_unpacked(device, 6);
}

TEST(UnpackBatch, TakesMoreInputsThanOneKernelDoes) {
  for (const Device device : devices()) expect_unpacked(device, 70);
}

TEST(UnpackBatch, WritesZerosBehindRowsOfDenseValues) {
  for (const Device device : devices()) {
    expect_unpacked(device, 6, 13, 16);
    expect_unpacked(device, 70, 5, 12);
    expect_unpacked(device, 0, 401, 404);
  }
}

TEST(UnpackBatch, RoundsDenseValuesToTwoBytes) {
  for (const Device device : devices())
    for (const DType dtype : {DType::f16, DType::bf16}) {
      expect_unpacked(device, 6, 13, 16, dtype);
      expect_unpacked(device, 70, 5, 8, dtype);
    }
}

}  // namespace
}  // namespace hctr::test
