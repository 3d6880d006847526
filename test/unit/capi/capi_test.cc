// The C interface gives the same results as the C++ classes, and reports errors by status and message.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "hctr/embedding.h"
#include "hctr/huge_ctr.h"

namespace hctr::test {
namespace {

struct Handle {
  hctr_embedding* set = nullptr;
  ~Handle() { hctr_embedding_destroy(set); }
};

hctr_array array_of(void* data, hctr_dtype dtype, const std::vector<int64_t>& shape) {
  return {data, dtype, static_cast<int32_t>(shape.size()), shape.data(), nullptr, -1};
}

struct OneTable {
  hctr_table table{};
  hctr_feature feature{};
  hctr_embedding_options options{};
  OneTable() {
    table.size = sizeof table;
    table.name = "items";
    table.dim = 5;
    feature.size = sizeof feature;
    feature.name = "item";
    feature.table = "items";
    feature.pooling = HCTR_MEAN;
    options.size = sizeof options;
    options.tables = &table;
    options.table_count = 1;
    options.features = &feature;
    options.feature_count = 1;
    options.gpu = -1;
    options.seed = 9;
  }
};

const std::vector<int32_t> kKeys = {4, -9, 4, 2'000'000'000};
const std::vector<int64_t> kOffsets = {10, 12, 12, 14};

TEST(CInterface, HasTheNumbersOfTheClass) {
  OneTable one;
  Handle c;
  ASSERT_EQ(hctr_embedding_create(&one.options, &c.set), HCTR_OK) << hctr_error_message();
  EmbeddingSet set(
      {.tables = {{.name = "items", .dim = 5}}, .features = {{"item", "items", Pooling::mean}}, .seed = 9});

  const std::vector<int64_t> four = {4}, three_and_one = {4}, matrix = {3, 5};
  std::vector<float> of_c(15), of_class(15), gradients(15);
  hctr_feature_keys keys{};
  keys.size = sizeof keys;
  keys.keys = array_of(const_cast<int32_t*>(kKeys.data()), HCTR_I32, four);
  keys.offsets = array_of(const_cast<int64_t*>(kOffsets.data()), HCTR_I64, three_and_one);
  const FeatureKeys same{kKeys.data(), ElementType::i32, 4, kOffsets.data()};
  hctr_update update{};
  update.size = sizeof update;
  update.learning_rate = 0.25f;
  for (int step = 0; step < 4; ++step) {
    int64_t batch = 0;
    const hctr_array to = array_of(of_c.data(), HCTR_F32, matrix), from = array_of(gradients.data(), HCTR_F32, matrix);
    ASSERT_EQ(hctr_embedding_forward(c.set, 3, &keys, &to, &batch), HCTR_OK) << hctr_error_message();
    const FeatureVectors<float> vectors{of_class.data()};
    const auto again = set.forward(3, {&same, 1}, {&vectors, 1});
    EXPECT_EQ(of_c, of_class);
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = of_c[i] - static_cast<float>(i % 3);
    ASSERT_EQ(hctr_embedding_update(c.set, batch, &from, &update), HCTR_OK) << hctr_error_message();
    const FeatureVectors<const float> dy{gradients.data()};
    set.update(again, {&dy, 1}, {.learning_rate = 0.25f});
  }
  std::vector<float> exported;
  const auto sink = [](void* user, int64_t count, const int64_t*, const float* rows, const float* const*, int32_t) {
    static_cast<std::vector<float>*>(user)->assign(rows, rows + count * 5);
    return 0;
  };
  ASSERT_EQ(hctr_embedding_export(c.set, "items", 0, 0, sink, &exported), HCTR_OK) << hctr_error_message();
  std::vector<float> expected;
  set.export_rows("items", false,
                  [&](const TableRows& rows) { expected.assign(rows.vectors.begin(), rows.vectors.end()); });
  EXPECT_EQ(exported, expected);
  EXPECT_EQ(exported.size(), 15u);
}

// Two ranks are threads, and each has a part of the samples. They give the results of one set with all samples.
TEST(CInterface, RanksHaveTheNumbersOfOneSet) {
  EmbeddingSet set(
      {.tables = {{.name = "items", .dim = 5}}, .features = {{"item", "items", Pooling::mean}}, .seed = 9});
  std::vector<float> whole(15), rows_of_set;
  const std::vector<float> gradients(15, 0.5f);
  const FeatureKeys all{kKeys.data(), ElementType::i32, 4, kOffsets.data()};
  const FeatureVectors<float> vectors{whole.data()};
  const FeatureVectors<const float> dy{gradients.data()};
  set.update(set.forward(3, {&all, 1}, {&vectors, 1}), {&dy, 1}, {.learning_rate = 0.25f});
  set.export_rows("items", false,
                  [&](const TableRows& rows) { rows_of_set.assign(rows.vectors.begin(), rows.vectors.end()); });

  hctr_join join{};
  join.size = sizeof join;
  join.ranks = 2;
  hctr_rank* ranks[2] = {};
  ASSERT_EQ(hctr_ranks_create(&join, ranks), HCTR_OK) << hctr_error_message();
  std::vector<float> of_ranks(15), exported;
  const auto run = [&](int rank) {
    int32_t number = -1, of = -1;
    ASSERT_EQ(hctr_rank_number(ranks[rank], &number, &of), HCTR_OK);
    EXPECT_EQ(number, rank);
    EXPECT_EQ(of, 2);
    OneTable one;
    Handle c;
    one.options.rank = ranks[rank];
    ASSERT_EQ(hctr_embedding_create(&one.options, &c.set), HCTR_OK) << hctr_error_message();
    hctr_rank_destroy(ranks[rank]);
    // Rank 0 has one sample, rank 1 has two.
    const int64_t samples = 1 + rank;
    const std::vector<int64_t> two = {2}, bounds = {samples + 1}, matrix = {samples, 5};
    hctr_feature_keys keys{};
    keys.size = sizeof keys;
    keys.keys = array_of(const_cast<int32_t*>(kKeys.data() + 2 * rank), HCTR_I32, two);
    keys.offsets = array_of(const_cast<int64_t*>(kOffsets.data() + rank), HCTR_I64, bounds);
    const hctr_array to = array_of(of_ranks.data() + 5 * rank, HCTR_F32, matrix),
                     from = array_of(const_cast<float*>(gradients.data()), HCTR_F32, matrix);
    hctr_update update{};
    update.size = sizeof update;
    update.learning_rate = 0.25f;
    int64_t batch = 0, received = -1;
    ASSERT_EQ(hctr_embedding_forward(c.set, samples, &keys, &to, &batch), HCTR_OK) << hctr_error_message();
    ASSERT_EQ(hctr_embedding_keys_of_batch(c.set, batch, &received), HCTR_OK) << hctr_error_message();
    EXPECT_EQ(received, rank == 0 ? 3 : 1);  // rank 0 received the even keys, rank 1 the only odd key
    ASSERT_EQ(hctr_embedding_update(c.set, batch, &from, &update), HCTR_OK) << hctr_error_message();
    const auto sink = [](void* user, int64_t count, const int64_t*, const float* rows, const float* const*, int32_t) {
      auto& so_far = *static_cast<std::vector<float>*>(user);  // called once per block of rows
      so_far.insert(so_far.end(), rows, rows + count * 5);
      return 0;
    };
    ASSERT_EQ(hctr_embedding_export(c.set, "items", 0, 0, sink, &exported), HCTR_OK) << hctr_error_message();
  };
  std::thread second([&] { run(1); });
  run(0);
  second.join();
  EXPECT_EQ(of_ranks, whole);
  EXPECT_EQ(exported, rows_of_set);
}

TEST(CInterface, AnAllocatorOfTheCallerGetsAllBack) {
  static int64_t taken = 0;
  OneTable one;
  one.options.allocate = [](size_t bytes, void*, void*) {
    taken += static_cast<int64_t>(bytes);
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  };
  EXPECT_EQ(hctr_embedding_create(&one.options, nullptr), HCTR_USAGE);
  {
    Handle half;
    EXPECT_EQ(hctr_embedding_create(&one.options, &half.set), HCTR_USAGE);  // the allocator lacks `free`
  }
  one.options.free = [](void* memory, size_t bytes, void*, void*) {
    taken -= static_cast<int64_t>(bytes);
    std::free(memory);
  };
  {
    Handle c;
    ASSERT_EQ(hctr_embedding_create(&one.options, &c.set), HCTR_OK) << hctr_error_message();
    const int64_t before = taken, keys = 100'000;
    ASSERT_EQ(hctr_embedding_reserve_lookup(c.set, 10, &keys), HCTR_OK) << hctr_error_message();
    EXPECT_GT(taken, before);
    int64_t bytes = 0;
    ASSERT_EQ(hctr_embedding_allocated_bytes(c.set, &bytes), HCTR_OK);
    EXPECT_EQ(bytes, taken);
  }
  EXPECT_EQ(taken, 0);
}

TEST(CInterface, ErrorsAreStatusAndMessageOfTheThread) {
  OneTable one;
  Handle c;
  one.table.dim = 0;
  EXPECT_EQ(hctr_embedding_create(&one.options, &c.set), HCTR_USAGE);
  EXPECT_NE(std::string(hctr_error_message()).find("dim is 0"), std::string::npos) << hctr_error_message();
  std::thread([] { EXPECT_STREQ(hctr_error_message(), ""); }).join();
  one.table.dim = 5;
  ASSERT_EQ(hctr_embedding_create(&one.options, &c.set), HCTR_OK);
  int64_t number = 0;
  EXPECT_EQ(hctr_embedding_rows(nullptr, "items", &number), HCTR_USAGE);
  EXPECT_EQ(hctr_embedding_rows(c.set, nullptr, &number), HCTR_USAGE);
  EXPECT_EQ(hctr_embedding_rows(c.set, "items", nullptr), HCTR_USAGE);
  EXPECT_EQ(hctr_embedding_load(c.set, "/nowhere"), HCTR_IO);
  hctr_embedding_destroy(nullptr);
}

// A struct of an older header is shorter: missing fields get their defaults. A struct of a newer header is longer: its
// unknown fields must be zero.
TEST(CInterface, StructsOfOtherHeadersAreRead) {
  OneTable one;
  Handle older, newer;
  one.options.size = offsetof(hctr_embedding_options, most_keys);
  one.options.most_keys = -5;  // this field is beyond the end of the older struct
  EXPECT_EQ(hctr_embedding_create(&one.options, &older.set), HCTR_OK) << hctr_error_message();
  struct {
    hctr_embedding_options known;
    int64_t unknown;
  } longer{one.options, 0};
  longer.known.most_keys = 0;
  longer.known.size = sizeof longer;
  EXPECT_EQ(hctr_embedding_create(&longer.known, &newer.set), HCTR_OK) << hctr_error_message();
  longer.unknown = 1;
  Handle refused;
  EXPECT_EQ(hctr_embedding_create(&longer.known, &refused.set), HCTR_USAGE);
  longer.known.size = 0;
  EXPECT_EQ(hctr_embedding_create(&longer.known, &refused.set), HCTR_USAGE);
}

TEST(CInterface, ArraysThatDoNotFitAreNamed) {
  OneTable one;
  Handle c;
  ASSERT_EQ(hctr_embedding_create(&one.options, &c.set), HCTR_OK);
  std::vector<float> vectors(32);
  const std::vector<int64_t> four = {4}, matrix = {3, 5}, short_matrix = {2, 5}, strides = {5, 2};
  const auto forward = [&](hctr_array to, int64_t samples, hctr_dtype type) {
    hctr_feature_keys keys{};
    keys.size = sizeof keys;
    keys.keys = array_of(const_cast<int32_t*>(kKeys.data()), type, four);
    keys.offsets = array_of(const_cast<int64_t*>(kOffsets.data()), HCTR_I64, four);
    int64_t batch = 0;
    EXPECT_EQ(hctr_embedding_forward(c.set, samples, &keys, &to, &batch), HCTR_USAGE);
    return std::string(hctr_error_message());
  };
  hctr_array to = array_of(vectors.data(), HCTR_F32, matrix);
  EXPECT_NE(forward(to, 4, HCTR_I32).find("expected 5 for 4 samples"), std::string::npos);
  EXPECT_NE(forward(to, 3, HCTR_F32).find("f32"), std::string::npos);
  to.shape = short_matrix.data();
  EXPECT_NE(forward(to, 3, HCTR_I32).find("[2, 5], expected [3, 5]"), std::string::npos) << hctr_error_message();
  to.shape = matrix.data();
  to.strides = strides.data();
  EXPECT_NE(forward(to, 3, HCTR_I32).find("not contiguous"), std::string::npos);
  to.strides = nullptr;
  to.gpu = 0;
  EXPECT_NE(forward(to, 3, HCTR_I32).find("on GPU 0"), std::string::npos) << hctr_error_message();
  int64_t rows = -1;
  EXPECT_EQ(hctr_embedding_rows(c.set, "items", &rows), HCTR_OK);
  EXPECT_EQ(rows, 0);
}

TEST(CInterface, DlpackThereAndBack) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> shape = {2, 3}, strides = {3, 1};
  hctr_array array = array_of(values.data(), HCTR_F32, shape), back{};
  array.strides = strides.data();
  bool released = false;
  DLManagedTensor* tensor = nullptr;
  ASSERT_EQ(
      hctr_array_to_dlpack(&array, [](void* flag) { *static_cast<bool*>(flag) = true; }, &released, &tensor), HCTR_OK);
  ASSERT_EQ(hctr_array_from_dlpack(tensor, &back), HCTR_OK) << hctr_error_message();
  EXPECT_EQ(back.data, values.data());
  EXPECT_EQ(back.dtype, HCTR_F32);
  EXPECT_EQ(back.gpu, -1);
  ASSERT_EQ(back.dims, 2);
  EXPECT_EQ(std::vector<int64_t>(back.shape, back.shape + 2), shape);
  EXPECT_EQ(std::vector<int64_t>(back.strides, back.strides + 2), strides);
  EXPECT_FALSE(released);
  // Calls the deleter as a DLPack consumer does. The fields before it are data, device, dims, type, shape, strides,
  // offset and the context.
  struct Layout {
    unsigned char tensor[48];
    void* context;
    void (*deleter)(DLManagedTensor*);
  };
  reinterpret_cast<Layout*>(tensor)->deleter(tensor);
  EXPECT_TRUE(released);
}

TEST(CInterface, SaysWhatDoesNotFitATableOrASavedModel) {
  hctr_frame* frame = nullptr;
  EXPECT_EQ(hctr_frame_create(nullptr, nullptr, 0, &frame), HCTR_USAGE);
  EXPECT_STREQ(hctr_error_message(), "hctr_frame_create(): the schema is NULL");
  EXPECT_EQ(hctr_frame_from_stream(nullptr, &frame), HCTR_USAGE);
  EXPECT_EQ(hctr_frame_rows(nullptr), 0);
  hctr_frame_destroy(nullptr);

  hctr_use_options options{};
  EXPECT_EQ(hctr_evaluate(&options, nullptr, nullptr, nullptr), HCTR_USAGE) << "without a size";
  options.size = sizeof options;
  EXPECT_EQ(hctr_evaluate(&options, nullptr, nullptr, nullptr), HCTR_USAGE);
  EXPECT_STREQ(hctr_error_message(), "hctr_use_options: model is NULL");
  options.model = "there is no such model";
  EXPECT_EQ(hctr_evaluate(&options, nullptr, nullptr, nullptr), HCTR_IO);
  EXPECT_EQ(hctr_export(&options, 9, "out", 0, nullptr, nullptr), HCTR_USAGE);
  EXPECT_STREQ(hctr_error_message(), "hctr_export(): unknown format 9");
  hctr_stop* stop = nullptr;
  ASSERT_EQ(hctr_stop_create(&stop), HCTR_OK);
  hctr_stop_set(stop);
  hctr_stop_destroy(stop);
}

}  // namespace
}  // namespace hctr::test
