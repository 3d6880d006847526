// The solver's placement applies to embeddings that state no placement. It must obey the same rules as a placement that
// an embedding states.
#include <gtest/gtest.h>

#include "config/sections/config.h"

namespace hctr::test {
namespace {

/// Returns the problems of a config with one table. `more`: fields of its sparse_embedding_hparam.
std::string first_error(const std::string& solver, const std::string& more = "", const std::string& section = "") {
  Problems problems;
  const std::string text = R"({"solver": {"batchsize": 8, "max_iter": 1)" + solver +
                           R"(}, "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}},
    "layers": [{"type": "Data", "source": "list.txt", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 3},
                "sparse": [{"top": "keys", "slot_num": 2, "nnz_per_slot": 1}]},
               {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "keys", "top": "vectors")" +
                           section + R"(, "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": 0)" + more +
                           "}}]}";
  read_config(Json::parse(text, "test.json"), problems);
  return problems.errors().empty() ? "" : problems.errors()[0].pointer + ": " + problems.errors()[0].message;
}

const std::string kEverywhere = R"(, "placement": "data_parallel")", kHybrid = R"(, "placement": "hybrid")",
                  kWhole = R"(, "placement": "localized")";

TEST(PlacementWords, TheSolversAreHeldToTheRulesOfATablesOwn) {
  EXPECT_EQ(first_error(kEverywhere).substr(0, 51), "/solver/placement: ranks can replicate all rows of ");
  EXPECT_EQ(first_error("", "", kEverywhere).substr(0, 53), "/layers/1/placement: ranks can replicate all rows of ");
  EXPECT_EQ(first_error(kEverywhere, R"(, "index": "direct", "slot_size_array": [4, 5])"), "");
  EXPECT_EQ(first_error(kHybrid, R"(, "min_count": 2)").substr(0, 38), "/solver/placement: eviction, admission");
  EXPECT_EQ(first_error(kHybrid, R"(, "min_count": 2)", kWhole), "") << "its own word comes first";
}

TEST(PlacementWords, FrequentKeysMayBeNamedWhereTheSolverAsksForThem) {
  const std::string named = R"(, "frequent_keys": "keys.json")";
  EXPECT_EQ(first_error(kHybrid, named), "");
  EXPECT_NE(first_error("", named).find("frequent_keys: needs"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
