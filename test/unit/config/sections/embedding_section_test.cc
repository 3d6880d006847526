// Embedding layers in the syntax of every config version.
#include "config/sections/embedding_section.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace hctr {
namespace {

struct ReadSection {
  EmbeddingSection section;
  Problems problems;
};

ReadSection read_section(const std::string& hparam, const std::string& more = "",
                         const std::string& type = "LocalizedSlotSparseEmbeddingHash") {
  const Json layer = Json::parse(R"({"type": ")" + type + R"(", "bottom": "data1", "top": "wide")" + more +
                                     R"(, "sparse_embedding_hparam": )" + hparam + "}",
                                 "test");
  ReadSection out;
  out.section = parse_embedding(layer, "/layers/1", out.problems);
  check_placement(out.section, "/layers/1", "/layers/1/placement", out.problems);
  return out;
}

std::string first_error(const ReadSection& r) {
  return r.problems.errors().empty() ? "" : r.problems.errors()[0].pointer + ": " + r.problems.errors()[0].message;
}

OptimizerSection adam() {
  OptimizerSection section;
  section.hyper.learning_rate = 0.001;
  return section;
}

TEST(EmbeddingSectionTest, Version21) {
  const ReadSection r =
      read_section(R"({"vocabulary_size": 1000, "load_factor": 0.75, "embedding_vec_size": 16, "combiner": 0})",
                   R"(, "plan_file": ["a.json", "b.json"])", "DistributedSlotSparseEmbeddingHash");
  EXPECT_EQ(first_error(r), "");
  EXPECT_EQ(r.problems.warnings().size(), 0u);
  EXPECT_EQ(r.problems.notes().size(), 2u);  // on load_factor and plan_file
  EXPECT_EQ(r.section.dim, 16);
  EXPECT_EQ(r.section.placement_rule(), PlacementRule::distributed);
  EXPECT_EQ(r.section.stated_rows(0, {4}), 250);
}

TEST(EmbeddingSectionTest, Version22WithSlotSizes) {
  const ReadSection r = read_section(
      R"({"slot_size_array": [4, 100, 25], "max_vocabulary_size_per_gpu": 7, "embedding_vec_size": 2, "combiner": 1})");
  EXPECT_EQ(first_error(r), "");
  EXPECT_EQ(r.section.stated_rows(0, {}), 129);
  EXPECT_EQ(r.section.stated_rows(0, {2, {0, 1, 0}}), 29);
  EXPECT_EQ(r.section.stated_rows(1, {2, {0, 1, 0}}), 100);
  EXPECT_EQ(r.section.stated_rows(1, {2, {0, Placement::kSpread, 1}}), 75);
  const TableSpec spec = r.section.table_spec({.optimizer = adam()});
  EXPECT_TRUE(spec.identity_by_slot);
  EXPECT_EQ(spec.combiner, ops::Combiner::mean);
  EXPECT_EQ(spec.slot_bounds, (std::vector<float>{0.5f, 0.1f, 0.2f}));
  EXPECT_EQ(spec.row_hint, 129);
  EXPECT_EQ(spec.row_limit, 0);
  Problems problems;
  check_slots(r.section, 2, "/layers/1", problems);
  ASSERT_EQ(problems.errors().size(), 1u);
  EXPECT_EQ(problems.errors()[0].message, "has 3 sizes; sparse input \"data1\" has 2 slots");
}

TEST(EmbeddingSectionTest, Version31) {
  const ReadSection r =
      read_section(R"({"workspace_size_per_gpu_in_mb": 1, "embedding_vec_size": 64, "combiner": "mean"})");
  EXPECT_EQ(first_error(r), "");
  EXPECT_EQ(r.section.stated_rows(0, {}), 4096);
  EXPECT_EQ(r.section.hparam.combiner, ops::Combiner::mean);
}

TEST(EmbeddingSectionTest, AFileForSeveralVersionsIsReadAsTheNewest) {
  const ReadSection both = read_section(
      R"({"vocabulary_size": 1000, "load_factor": 0.75, "max_vocabulary_size_per_gpu": 300, "embedding_vec_size": 64, "combiner": 0})");
  EXPECT_EQ(first_error(both), "");
  EXPECT_EQ(both.section.stated_rows(0, {}), 300);
  const ReadSection three =
      read_section(R"({"vocabulary_size": 1000, "max_vocabulary_size_per_gpu": 300, "workspace_size_per_gpu_in_mb": 1,
                              "embedding_vec_size": 64, "combiner": 0})");
  EXPECT_EQ(first_error(three), "");
  EXPECT_EQ(three.section.stated_rows(0, {}), 4096);
}

TEST(EmbeddingSectionTest, ItsOwnOptimizerKeepsItsRateInProportion) {
  const ReadSection r =
      read_section(R"({"max_vocabulary_size_per_gpu": 10, "embedding_vec_size": 4, "combiner": 0})",
                   R"(, "optimizer": {"type": "SGD", "global_update": true, "sgd_hparam": {"learning_rate": 0.1}})");
  EXPECT_EQ(first_error(r), "");
  ASSERT_TRUE(r.section.optimizer);
  const TableSpec spec = r.section.table_spec({.optimizer = adam()});
  EXPECT_EQ(spec.optimizer.kind, ops::Optimizer::Kind::sgd);
  EXPECT_FLOAT_EQ(spec.optimizer.rate_factor, 100);
  EXPECT_EQ(spec.update, UpdateType::global);
}

TEST(EmbeddingSectionTest, ItsOwnOptimizerMayBeOfAnyType) {
  const auto spec_with = [](const std::string& optimizer) {
    const ReadSection r = read_section(R"({"max_vocabulary_size_per_gpu": 10, "embedding_vec_size": 4, "combiner": 0})",
                                       R"(, "optimizer": )" + optimizer);
    EXPECT_EQ(first_error(r), "");
    return r.section.table_spec({.optimizer = adam()});
  };
  const TableSpec wide = spec_with(R"({"type": "Ftrl", "ftrl_hparam": {"learning_rate": 0.002, "lambda1": 0.5}})");
  EXPECT_EQ(wide.optimizer.kind, ops::Optimizer::Kind::ftrl);
  EXPECT_EQ(wide.optimizer.lambda1, 0.5f);
  EXPECT_FLOAT_EQ(wide.optimizer.rate_factor, 2);
  EXPECT_EQ(wide.state_dim(), 4);
  const TableSpec deep =
      spec_with(R"({"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.001, "row_wise": true}})");
  EXPECT_EQ(deep.optimizer.kind, ops::Optimizer::Kind::adagrad);
  EXPECT_EQ(deep.state_dim(), 1);
  EXPECT_EQ(
      first_error(read_section(R"({"embedding_vec_size": 4, "combiner": 0})", R"(, "optimizer": {"type": "RMSProp"})")),
      "/layers/1/optimizer: an optimizer of type RMSProp needs the object \"rmsprop_hparam\"");
}

TEST(EmbeddingSectionTest, TheLimitIsThereWhenAskedFor) {
  const ReadSection r =
      read_section(R"({"max_vocabulary_size_per_gpu": 10, "grow": false, "embedding_vec_size": 4, "combiner": 0})");
  EXPECT_EQ(r.section.table_spec({.optimizer = adam()}).row_limit, 10);
  EXPECT_EQ(first_error(read_section(R"({"grow": false, "embedding_vec_size": 4, "combiner": 0})")),
            "/layers/1/sparse_embedding_hparam/grow: a table that must not grow needs its size: "
            "\"max_vocabulary_size_per_gpu\"");
}

TEST(EmbeddingSectionTest, WhatHappensAtTheLimitMakesTheSizeALimit) {
  const auto spec_with = [](const std::string& fields) {
    const ReadSection r = read_section("{" + fields + R"(, "embedding_vec_size": 4, "combiner": 0})");
    EXPECT_EQ(first_error(r), "");
    return r.section.table_spec({.optimizer = adam()});
  };
  for (const auto& [word, when] : EnumWords<WhenFull>::table()) {
    const TableSpec spec = spec_with(R"("max_vocabulary_size_per_gpu": 10, "when_full": ")" + word + "\"");
    EXPECT_EQ(spec.row_limit, 10) << word;
    EXPECT_EQ(spec.policy.when_full, when) << word;
    EXPECT_EQ(spec.limit_setting, "max_vocabulary_size_per_gpu");
  }
  EXPECT_EQ(spec_with(R"("slot_size_array": [3, 4], "when_full": "ignore")").limit_setting, "slot_size_array");
  EXPECT_EQ(spec_with(R"("slot_size_array": [3, 4], "when_full": "ignore")").row_limit, 7);
  const TableSpec open =
      spec_with(R"("max_vocabulary_size_per_gpu": 10, "expire_after": 50, "min_count": 3, "max_candidates": 99)");
  EXPECT_EQ(open.row_limit, 0);
  EXPECT_EQ(open.policy.expire_after, 50);
  EXPECT_EQ(open.policy.min_count, 3);
  EXPECT_EQ(open.policy.max_candidates, 99);
  EXPECT_EQ(spec_with(R"("admit_probability": 0.25)").policy.admit_probability, 0.25);
  EXPECT_FALSE(spec_with(R"("max_vocabulary_size_per_gpu": 10)").policy.any());
  EXPECT_FALSE(spec_with(R"("min_count": 1)").policy.any()) << "every key has come once";
  EXPECT_TRUE(spec_with(R"("count_keys": true)").policy.keeps_access_stats());
  EXPECT_FALSE(spec_with(R"("count_keys": true)").policy.any()) << "no row leaves or waits for that";
  EXPECT_FALSE(spec_with(R"("min_count": 3)").policy.keeps_access_stats());
}

TEST(EmbeddingSectionTest, PoliciesThatCannotBeAreNamed) {
  const auto error = [](const std::string& fields) {
    return first_error(read_section("{" + fields + R"(, "embedding_vec_size": 4, "combiner": 0})"));
  };
  const std::string place = "/layers/1/sparse_embedding_hparam";
  EXPECT_EQ(error(R"("when_full": "ignore")"),
            place + "/when_full: needs a row limit: set \"max_vocabulary_size_per_gpu\"");
  EXPECT_EQ(
      error(R"("min_count": 2, "admit_probability": 0.5)"),
      place + "/admit_probability: \"min_count\" is also set; keys get rows either by count or at random: keep one");
  EXPECT_EQ(error(R"("max_candidates": 2)"),
            place + "/max_candidates: limits the keys that \"min_count\" counts: set \"min_count\" too");
  EXPECT_EQ(error(R"("min_count": 0)"),
            place + "/min_count: expected an integer, at least 1 and at most 1000000000, found the integer 0");
}

TEST(EmbeddingSectionTest, LaterCombinersAndTheNameOfTheLengths) {
  for (const auto& [word, combiner] : EnumWords<ops::Combiner>::table()) {
    const ReadSection r = read_section(R"({"embedding_vec_size": 4, "combiner": ")" + word + "\"}");
    EXPECT_EQ(first_error(r), "");
    EXPECT_EQ(r.section.hparam.combiner, combiner);
    EXPECT_EQ(r.section.pooled(), word != "none");
  }
  const auto tops = [](const std::string& names) {
    const Json layer =
        Json::parse(R"({"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "data1", "top": )" + names +
                        R"(, "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "none"}})",
                    "test");
    ReadSection out;
    out.section = parse_embedding(layer, "/layers/1", out.problems);
    return out;
  };
  EXPECT_EQ(tops(R"(["items", "lengths"])").section.tops.names, (std::vector<std::string>{"items", "lengths"}));
  EXPECT_EQ(tops(R"(["items", "lengths"])").section.table_spec({.optimizer = adam()}).name, "items");
  EXPECT_EQ(first_error(tops(R"(["a", "b", "c"])")),
            "/layers/1/top: names 3 tensors; expected one or two: the vectors and the number of keys of each slot");
  EXPECT_EQ(first_error(tops("3")), "/layers/1/top: expected a string or an array of strings, found the integer 3");
  EXPECT_EQ(first_error(tops("[]")),
            "/layers/1/top: names 0 tensors; expected one or two: the vectors and the number of keys of each slot");
}

TEST(EmbeddingSectionTest, WrongValuesAreNamed) {
  EXPECT_EQ(first_error(read_section(R"({"embedding_vec_size": 4, "combiner": 2})")),
            "/layers/1/sparse_embedding_hparam/combiner: expected \"sum\" (or 0), \"mean\" (or 1), \"sqrtn\" or "
            "\"none\", found the integer 2");
  EXPECT_EQ(
      first_error(read_section(R"({"embedding_vec_size": 0, "combiner": 0})")),
      "/layers/1/sparse_embedding_hparam/embedding_vec_size: expected an integer, at least 1, found the integer 0");
  EXPECT_EQ(first_error(read_section(R"({"embeding_vec_size": 4, "combiner": 0})")),
            "/layers/1/sparse_embedding_hparam/embeding_vec_size: LocalizedSlotSparseEmbeddingHash has no field "
            "\"embeding_vec_size\"; did you mean "
            "\"embedding_vec_size\"?");
}

TEST(EmbeddingSectionTest, SlotSizesGiveEveryKeyARowWhereTheyAreAPromiseOrItIsAskedFor) {
  const auto spec_with = [](const std::string& more, const std::string& type = "LocalizedSlotSparseEmbeddingHash") {
    const ReadSection r = read_section(
        R"({"slot_size_array": [4, 100, 25], "embedding_vec_size": 2, "combiner": 0)" + more + "}", "", type);
    EXPECT_EQ(first_error(r), "");
    return r.section.table_spec({.optimizer = adam()});
  };
  for (const std::string& type : embedding_types()) {
    const int64_t by_itself = type == "LocalizedSlotSparseEmbeddingOneHot" || type == "HybridSparseEmbedding" ? 129 : 0;
    EXPECT_EQ(spec_with("", type).direct.rows(), by_itself) << type;
    EXPECT_EQ(spec_with(R"(, "index": "auto")", type).direct.rows(), by_itself) << type;
    EXPECT_EQ(spec_with(R"(, "min_count": 2)", type).direct.rows(), 0) << "keys get rows later";
    EXPECT_EQ(spec_with(R"(, "index": "direct")", type).direct.rows(), 129) << type;
    EXPECT_TRUE(spec_with(R"(, "index": "hash")", type).direct.empty()) << type;
    EXPECT_EQ(spec_with(R"(, "index": "direct")", type).direct.by_slot, type != "DistributedSlotSparseEmbeddingHash");
  }
  EXPECT_TRUE(read_section(R"({"max_vocabulary_size_per_gpu": 9, "embedding_vec_size": 2, "combiner": 0})")
                  .section.table_spec({.optimizer = adam()})
                  .direct.empty());
  EXPECT_EQ(first_error(read_section(R"({"index": "direct", "embedding_vec_size": 2, "combiner": 0})")),
            "/layers/1/sparse_embedding_hparam/index: a direct index needs the number of keys: \"slot_size_array\"");
  EXPECT_EQ(
      first_error(read_section(
          R"({"index": "direct", "expire_after": 9, "slot_size_array": [3, 4], "embedding_vec_size": 2, "combiner": 0})")),
      "/layers/1/sparse_embedding_hparam/index: a direct index has a row for every key from the start, so "
      "admission and eviction are not possible: use \"hash\"");
  EXPECT_EQ(
      first_error(
          read_section(R"({"index": "derict", "slot_size_array": [3], "embedding_vec_size": 2, "combiner": 0})")),
      "/layers/1/sparse_embedding_hparam/index: expected \"auto\", \"hash\" or \"direct\"; did you mean \"direct\"?, "
      "found the string \"derict\"");
}

TEST(EmbeddingSectionTest, MoreKeysThanRowsCanBeNumberedNeedAHash) {
  const std::string sizes =
      R"({"slot_size_array": [2147483646, 9223372036854775807], "embedding_vec_size": 2, "combiner": 0)";
  EXPECT_TRUE(read_section(sizes + "}").section.table_spec({.optimizer = adam()}).direct.empty());
  EXPECT_EQ(first_error(read_section(sizes + R"(, "index": "direct"})")),
            "/layers/1/sparse_embedding_hparam/index: the sizes in \"slot_size_array\" add up to more than the "
            "2147483646 rows that a table can have; "
            "use \"hash\"");
}

TEST(EmbeddingSectionTest, TheIdentityOfRowsMayBeChosenForAnyType) {
  const auto section = [](const std::string& type, const std::string& identity) {
    const ReadSection r = read_section(R"({"embedding_vec_size": 2, "combiner": 0)" +
                                           (identity.empty() ? "" : R"(, "identity": ")" + identity + "\"") + "}",
                                       "", type);
    EXPECT_EQ(first_error(r), "");
    return r.section;
  };
  for (const std::string& type : embedding_types()) {
    const bool distributed = type == "DistributedSlotSparseEmbeddingHash";
    EXPECT_EQ(section(type, "").identity_by_slot(), !distributed);
    EXPECT_TRUE(section(type, "slot_and_key").table_spec({.optimizer = adam()}).identity_by_slot);
    EXPECT_FALSE(section(type, "key").table_spec({.optimizer = adam()}).identity_by_slot);
    // If slots share rows, only the key can determine the owner of a row. Otherwise the type decides whether the key or
    // the slot determines the owner.
    const bool hybrid = type == "HybridSparseEmbedding";
    EXPECT_EQ(section(type, "key").placement_rule(), hybrid ? PlacementRule::hybrid : PlacementRule::distributed);
    EXPECT_EQ(section(type, "slot_and_key").placement_rule(), hybrid        ? PlacementRule::hybrid
                                                              : distributed ? PlacementRule::distributed
                                                                            : PlacementRule::localized);
  }
}

TEST(EmbeddingSectionTest, StorageOfVectorsAndStates) {
  const auto spec_with = [](const std::string& more, const std::string& row_wise = "false") {
    const ReadSection r =
        read_section(R"({"embedding_vec_size": 2, "combiner": 0)" + more + "}",
                     R"(, "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.1, "row_wise": )" +
                         row_wise + "}}");
    EXPECT_EQ(first_error(r), "");
    return r.section.table_spec({.optimizer = adam()});
  };
  EXPECT_EQ(spec_with("").storage, DType::f32);
  EXPECT_EQ(spec_with("").stored_states(), DType::f32);
  EXPECT_EQ(spec_with(R"(, "storage": "fp16")").storage, DType::f16);
  EXPECT_EQ(spec_with(R"(, "storage": "bf16", "state_storage": "bf16")").stored_states(), DType::bf16);
  EXPECT_EQ(spec_with(R"(, "storage": "bf16")").stored_states(), DType::f32);
  EXPECT_EQ(spec_with(R"(, "storage": "bf16", "state_storage": "bf16")", "true").stored_states(), DType::f32)
      << "one number a row stays f32";
  EXPECT_EQ(
      first_error(read_section(R"({"storage": "f8", "embedding_vec_size": 2, "combiner": 0})")),
      "/layers/1/sparse_embedding_hparam/storage: expected \"fp32\", \"fp16\" or \"bf16\", found the string \"f8\"");
}

TEST(EmbeddingSectionTest, PlacementMayBeLeftToThePlan) {
  const std::string hparam = R"({"embedding_vec_size": 2, "combiner": 0})",
                    by_key = R"({"embedding_vec_size": 2, "combiner": 0, "identity": "key"})";
  for (const std::string& type : embedding_types()) {
    EXPECT_EQ(read_section(hparam, R"(, "placement": "auto")", type).section.placement_rule(),
              type == "HybridSparseEmbedding" ? PlacementRule::hybrid : PlacementRule::automatic);
    EXPECT_EQ(read_section(hparam, R"(, "placement": "distributed")", type).section.placement_rule(),
              PlacementRule::distributed);
    EXPECT_EQ(first_error(read_section(by_key, R"(, "placement": "localized")", type)),
              "/layers/1/placement: with \"identity\": \"key\" a row has one owner for all slots: use "
              "\"distributed\" or \"auto\", or \"identity\": \"slot_and_key\"");
  }
}

TEST(EmbeddingSectionTest, WhichRowsEveryRankHas) {
  using Of = Replication::Of;
  const std::string vectors = R"({"embedding_vec_size": 2, "combiner": 0)",
                    sizes = R"(, "index": "direct", "slot_size_array": [4, 100, 25])";
  const auto placed = [](const std::string& word) { return R"(, "placement": ")" + word + "\""; };
  const auto replication = [&](const std::string& more, const std::string& word = "auto",
                               const std::string& type = "LocalizedSlotSparseEmbeddingHash") {
    const ReadSection r = read_section(vectors + more + "}", placed(word), type);
    EXPECT_EQ(first_error(r), "");
    return r.section.replication();
  };
  EXPECT_EQ(replication("").of, Of::none);
  EXPECT_EQ(replication("", "localized", "HybridSparseEmbedding").of, Of::none);
  EXPECT_EQ(
      replication(R"(, "when_full": "evict_lru", "max_vocabulary_size_per_gpu": 9)", "auto", "HybridSparseEmbedding")
          .of,
      Of::none)
      << "rows may leave";
  for (const auto& [word, type] :
       {std::pair("auto", "HybridSparseEmbedding"), {"hybrid", "DistributedSlotSparseEmbeddingHash"}}) {
    const Replication found = replication("", word, type),
                      named = replication(R"(, "frequent_keys": "keys.json")", word, type);
    EXPECT_EQ(found.of, Of::frequent);
    EXPECT_EQ(found.steps, 20);
    EXPECT_EQ(found.most_rows, 1) << "in batches";
    EXPECT_EQ(named.keys_file, "keys.json");
    EXPECT_EQ(
        replication(R"(, "num_iterations_statistics": 7, "max_num_frequent_categories": 3)", word, type).most_rows, 3);
  }
  const TableSpec whole =
      read_section(vectors + sizes + "}", placed("data_parallel"))
          .section.table_spec({.optimizer = adam(),
                               .rank = 2,
                               .ranks = 4,
                               .placement = Placement::without_plan(PlacementRule::data_parallel, true, 3, 4)});
  EXPECT_EQ(whole.replication.of, Of::all);
  EXPECT_EQ(whole.direct.rows(), 129) << "every rank has all rows";

  const auto error = [&](const std::string& more, const std::string& word,
                         const std::string& type = "LocalizedSlotSparseEmbeddingHash") {
    return first_error(read_section(vectors + more + "}", placed(word), type));
  };
  EXPECT_EQ(error("", "data_parallel"),
            "/layers/1/placement: ranks can replicate all rows of 'wide' only if the keys are known: \"index\": "
            "\"direct\" with \"slot_size_array\"");
  EXPECT_EQ(error(R"(, "min_count": 2)", "hybrid"),
            "/layers/1/placement: eviction, admission and row limits are not possible for replicated rows: remove "
            "these fields of 'wide', or use \"localized\" or \"distributed\"");
  for (const std::string word : {"hybrid", "data_parallel"})
    EXPECT_EQ(error(sizes + R"(, "count_keys": true)", word),
              "/layers/1/placement: \"count_keys\" needs an owner rank for every row, and replicated rows have no "
              "owner: remove \"count_keys\" of 'wide', or use \"localized\" or \"distributed\"");
  EXPECT_EQ(error(R"(, "frequent_keys": "keys.json")", "localized"),
            "/layers/1/sparse_embedding_hparam/frequent_keys: needs \"placement\": \"hybrid\"");
}

TEST(PlacementTest, EveryKeyHasOneOwner) {
  const Placement localized = Placement::without_plan(PlacementRule::localized, true, 10, 3),
                  distributed = Placement::without_plan(PlacementRule::distributed, true, 10, 3);
  EXPECT_EQ(Placement::without_plan(PlacementRule::automatic, true, 10, 3), localized);
  EXPECT_EQ(Placement::without_plan(PlacementRule::automatic, false, 10, 3), distributed)
      << "slots that share rows have one owner for a key";
  for (int64_t slot = 0; slot < 10; ++slot)
    for (const int64_t key : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
      EXPECT_EQ(localized.owner(slot, key), slot % 3);
      const int64_t owner = distributed.owner(slot, key);
      EXPECT_TRUE(0 <= owner && owner < 3);
      for (int64_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(localized.holds(rank, slot), rank == slot % 3);
        EXPECT_TRUE(distributed.holds(rank, slot));
      }
    }
}

}  // namespace
}  // namespace hctr
