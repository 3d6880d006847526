// Vectors written to another device's memory. The kernels use fewer threads, and each thread writes several vectors.
#include <gtest/gtest.h>

#include <random>

#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/owner_vectors.h"
#include "support/values_on_device.h"

namespace hctr::test {
namespace {

constexpr int64_t kFarColumns = 2, kFarRows = 50;

/// On a GPU, more vectors than all thread groups process at once. The number is no multiple of the groups.
int64_t far_samples(Device device) { return device.is_cuda() ? 10006 : 106; }

struct FarRow {
  DType dtype;
  int64_t dim;
};
/// Long vectors, for which the kernels use dedicated multiprocessors, and short vectors.
constexpr FarRow kFarVectors[] = {{DType::f16, 128}, {DType::bf16, 64}, {DType::f32, 32}, {DType::f32, 4}};

std::vector<float> small_numbers(int64_t count) {
  std::mt19937_64 random(5);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(static_cast<int>(random() % 201) - 100) / 8);
  return values;
}

/// Device memory for values of any floating-point type.
struct AnyValues {
  AnyValues(Device device, DType dtype, Shape shape, const std::vector<float>& values)
      : buffer(device, static_cast<size_t>(shape.elements()) * size_of(dtype)),
        tensor(buffer.data(), TensorSpec(dtype, shape), device) {
    dispatch_float(dtype, [&]<class T>() {
      std::vector<T> of_type;
      for (const float value : values) of_type.push_back(T(value));
      from_host(runtime_of(device).compute_stream(), tensor, of_type);
    });
  }
  std::vector<float> host() const {
    std::vector<float> out;
    dispatch_float(tensor.dtype(), [&]<class T>() {
      for (const T value : to_host<T>(runtime_of(tensor.device()).compute_stream(), tensor))
        out.push_back(static_cast<float>(value));
    });
    return out;
  }
  Buffer buffer;
  Tensor tensor;
};

TEST(FarVectors, OfGradientsAllArriveAndAreSearched) {
  for (const Device device : devices())
    for (const auto& [dtype, dim] : kFarVectors)
      for (const bool too_large : {false, true}) {
        SCOPED_TRACE(cat(name_of(dtype), ", ", dim, " on ", to_string(device)));
        Context ctx(runtime_of(device), runtime_of(device).compute_stream());
        const int64_t samples = far_samples(device);
        const Shape shape{samples, kFarColumns, dim};
        std::vector<float> gradients = small_numbers(shape.elements());
        if (too_large) gradients.back() = 64;
        const AnyValues dy(device, dtype, shape, gradients);
        const AnyValues there(device, dtype, shape, std::vector<float>(gradients.size(), -77));
        std::vector<ops::RemoteColumn> columns;
        for (int64_t c = 0; c < kFarColumns; ++c)
          columns.push_back(
              {there.buffer.data() + c * dim * static_cast<int64_t>(size_of(dtype)), kFarColumns, /*index=*/c});
        const ValuesOnDevice<ops::RemoteColumn> remote(device, columns);
        const ValuesOnDevice<int32_t> first(device, {0, 1, 2});
        const ValuesOnDevice<float> found(device, {0});
        ops::OwnerVectors owners{.memory = {.dtype = dtype, .remote = true},
                                 .columns = kFarColumns,
                                 .first = first.data(),
                                 .remote_columns = remote.data()};
        for (const ops::RemoteColumn& column : columns) owners.memory.align(reinterpret_cast<uintptr_t>(column.vector));
        ops::split_gradients(ctx, {.slots = kFarColumns, .samples = samples, .columns = kFarColumns}, owners,
                             ops::Combiner::sum, dy.tensor, {63, found.data()});
        EXPECT_TRUE(there.host() == gradients);
        EXPECT_EQ(found.host()[0], too_large ? 1 : 0);
      }
}

TEST(FarVectors, OfRowsAllArrive) {
  for (const Device device : devices())
    for (const auto& [dtype, dim] : kFarVectors) {
      SCOPED_TRACE(cat(name_of(dtype), ", ", dim, " on ", to_string(device)));
      constexpr int64_t kRanks = 2;
      const int64_t samples = far_samples(device), each = samples / kRanks;
      Context ctx(runtime_of(device), runtime_of(device).compute_stream());
      std::mt19937_64 random(7);
      std::vector<int32_t> rows, offsets = {0};
      for (int64_t bag = 0; bag < kFarColumns * samples; ++bag) {
        for (auto keys = 1 + random() % 2; keys > 0; --keys)
          rows.push_back(static_cast<int32_t>(1 + random() % kFarRows));
        offsets.push_back(static_cast<int32_t>(rows.size()));
      }
      const ValuesOnDevice<int32_t> of_keys(device, rows), of_bags(device, offsets);
      const ValuesOnDevice<float> table(device, small_numbers((kFarRows + 1) * dim));
      const ops::KeyBatch batch{
          .offsets = of_bags.data(), .slots = kFarColumns, .samples = samples, .columns = kFarColumns};
      const Shape shape{samples, kFarColumns, dim};
      const std::vector<float> empty(static_cast<size_t>(shape.elements()), -77);
      const AnyValues here(device, dtype, shape, empty), there(device, dtype, shape, empty);
      const ops::RowMemory memory{table.data(), DType::f32};
      ops::pool(ctx, batch, of_keys.data(), memory, ops::Combiner::sum, here.tensor);
      ops::SampleShards shards{.memory = {.dtype = dtype, .remote = true},
                               .ranks = kRanks,
                               .samples = each,
                               .row_stride = kFarColumns * dim,
                               .first = 1};
      std::vector<std::byte*> begin;
      for (int64_t r = 0; r < kRanks; ++r)
        begin.push_back(there.buffer.data() + r * each * kFarColumns * dim * static_cast<int64_t>(size_of(dtype)));
      for (std::byte* at : begin) shards.memory.align(reinterpret_cast<uintptr_t>(at));
      const ValuesOnDevice<std::byte*> addresses(device, begin);
      shards.shard = addresses.data();
      ops::pool_shards(ctx, batch, of_keys.data(), memory, ops::Combiner::sum, dim, shards);
      EXPECT_TRUE(there.host() == here.host());
    }
}

}  // namespace
}  // namespace hctr::test
