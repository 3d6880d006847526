// The first key of each embedding when there are several sparse inputs.
#include "config/sections/key_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hctr::test {
namespace {

/// A config with inputs "wide" of two slots and "deep" of three slots, each with one embedding.
Config ranged_config(const std::string& data_sizes, const std::string& wide, const std::string& deep,
                     Problems& problems) {
  const auto embedding = [](const std::string& type, const std::string& name, const std::string& more) {
    return R"({"type": ")" + type + R"(", "bottom": ")" + name + R"(", "top": ")" + name +
           R"(_vectors", "sparse_embedding_hparam":
      {"embedding_vec_size": 4, "combiner": 0)" +
           (more.empty() ? "" : ", ") + more + "}}";
  };
  const std::string text =
      R"({"solver": {"batchsize": 8, "max_iter": 1}, "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}},
    "layers": [{"type": "Data", "source": "list.txt", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 3}, )" +
      data_sizes +
      R"("sparse": [{"top": "wide", "slot_num": 2, "nnz_per_slot": 1}, {"top": "deep", "slot_num": 3, "nnz_per_slot": 1}]}, )" +
      embedding("DistributedSlotSparseEmbeddingHash", "wide", wide) + ", " +
      embedding("LocalizedSlotSparseEmbeddingOneHot", "deep", deep) + "]}";
  return read_config(Json::parse(text, "test.json"), problems);
}

TableSpec deep_table(const Config& config) {
  return config.embeddings.at(1).section.table_spec({.optimizer = config.optimizer});
}

const std::string kDeep = R"("slot_size_array": [10, 20, 30])",
                  kPlace = "/layers/2/sparse_embedding_hparam/slot_size_array";

TEST(KeyRanges, TheFirstKeyOfALaterInputStandsBehindThoseOfTheInputsBefore) {
  for (const auto& [data, wide] :
       {std::pair<std::string, std::string>{R"("slot_size_array": [5, 6, 10, 20, 30], )", ""},
        {"", R"("slot_size_array": [5, 6], "index": "direct")"},
        {R"("slot_size_array": [5, 6, 10, 20, 30], )", R"("slot_size_array": [5, 6], "index": "direct")"}}) {
    Problems problems;
    const Config config = ranged_config(data, wide, kDeep, problems);
    EXPECT_FALSE(problems.any_error());
    const DirectKeys keys = deep_table(config).direct;
    EXPECT_EQ(keys.rows(), 60);
    EXPECT_EQ(keys.first, (std::vector<int64_t>{11, 21, 41}));
    EXPECT_EQ(keys.index().row(21, 1), 11);
    EXPECT_EQ(config.embeddings[0].section.table_spec({.optimizer = config.optimizer}).direct.rows(),
              wide.empty() ? 0 : 11);
  }
}

TEST(KeyRanges, WhereTheCountIsNotKnownOrInDoubtRowsAreFoundByHashAndANoteSaysWhy) {
  const auto expect = [](const std::string& data, const std::string& why) {
    Problems problems;
    EXPECT_TRUE(deep_table(ranged_config(data, "", kDeep, problems)).direct.empty());
    const auto& notes = problems.notes();
    const auto note =
        std::find_if(notes.begin(), notes.end(), [](const Problems::Entry& each) { return each.pointer == kPlace; });
    ASSERT_TRUE(note != notes.end());
    EXPECT_EQ(note->message, "the table uses a hash index: " + why);
    Problems forced;
    ranged_config(data, "", kDeep + R"(, "index": "direct")", forced);
    ASSERT_EQ(forced.errors().size(), 1u);
    EXPECT_EQ(forced.errors()[0].pointer, kPlace);
    EXPECT_EQ(forced.errors()[0].message, "a direct index is not possible: " + why);
    Problems hash;
    ranged_config(data, "", kDeep + R"(, "index": "hash")", hash);
    EXPECT_FALSE(hash.any_error());
  };
  expect("",
         "the keys of \"deep\" follow those of \"wide\", whose number of keys is unknown; set \"slot_size_array\" of "
         "the Data layer");
  expect(R"("slot_size_array": [5, 6, 10, 20, 31], )",
         "\"slot_size_array\" differs from the sizes that another section of the config states for the slots of "
         "\"deep\"");
}

}  // namespace
}  // namespace hctr::test
