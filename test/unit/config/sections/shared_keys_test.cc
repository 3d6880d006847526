// Slots with the same key space share the vectors of one table. If slots cannot share vectors, the config has an error
// that states the reason.
#include "config/sections/shared_keys.h"

#include <gtest/gtest.h>

#include "formats/catalog/format_table.h"
#include "support/problems_text.h"

namespace hctr::test {
namespace {

/// A config with the slots a, b and c. `inputs`: the number of slots of each sparse input; each input has its own
/// table. `hparam`: hyperparameters of all tables.
Json config_text(const std::string& slots, const std::vector<int>& inputs, const std::string& type,
                 const std::string& hparam) {
  std::string sparse, tables;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string number = std::to_string(i);
    sparse += (i ? ", " : "") + (R"({"top": "keys)" + number + R"(", "nnz_per_slot": 1, "slot_num": )") +
              std::to_string(inputs[i]) + "}";
    tables += R"(, {"type": ")" + type + R"(SlotSparseEmbeddingHash", "bottom": "keys)" + number + R"(", "top": "t)" +
              number + R"(", "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum")" + hparam + "}}";
  }
  const std::string text =
      R"({"solver": {"batchsize": 8, "max_iter": 1}, "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}},
    "layers": [{"type": "Data", "format": "Csv", "source": "list.txt", "csv": {"labels": ["y"], "slots": )" +
      slots + R"(}, "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [)" + sparse + "]}" + tables + "]}";
  return Json::parse(text, "test.json");
}

Config config_of_slots(const std::string& slots, const std::vector<int>& inputs, const std::string& type,
                       const std::string& hparam) {
  Problems problems;
  return read_config(config_text(slots, inputs, type, hparam), problems);
}

std::string problems_of(const std::string& slots, const std::vector<int>& inputs, const std::string& type,
                        const std::string& hparam = "") {
  Problems problems;
  read_config(config_text(slots, inputs, type, hparam), problems);
  return problems_text(problems);
}

/// The key space of each slot.
std::vector<std::string> spaces_of(const std::string& slots, const std::vector<int>& inputs, const std::string& type,
                                   const std::string& hparam) {
  Config config = config_of_slots(slots, inputs, type, hparam);
  return key_spaces_of(*format_type(config.data.format).columns(config.data)->slots);
}

const std::string kShared = R"([{"columns": ["a"], "key_space": "s"}, {"columns": ["b", "c"], "key_space": "s"}])",
                  kOneColumnEach = R"([{"columns": ["a", "b", "c"]}])";

TEST(SharedKeys, OneTableThatReadsTwoOfTheSlotsIsEnough) {
  EXPECT_EQ(problems_of(kShared, {3}, "Distributed"), "");
  EXPECT_EQ(problems_of(kShared, {1, 2}, "Distributed"), "");
  EXPECT_EQ(problems_of(kShared, {3}, "Localized", R"(, "identity": "key")"), "");
}

TEST(SharedKeys, AWarningSaysWhyNoVectorIsShared) {
  EXPECT_EQ(problems_of(kShared, {1, 1, 1}, "Distributed"),
            "warning /layers/0/csv/slots: slots of the key space \"s\" share no vectors: no embedding reads two of "
            "its slots; put the slots into one sparse input\n");
  EXPECT_EQ(
      problems_of(kShared, {1, 2}, "Localized"),
      "warning /layers/0/csv/slots: slots of the key space \"s\" share no vectors: rows of the embedding /layers/2 are "
      "identified by slot and key; set \"identity\": \"key\" in sparse_embedding_hparam to share rows\n");
}

TEST(SharedKeys, ATableOfKeysHasOneRowForATextInAnyOfItsSlots) {
  const std::string key = R"(, "identity": "key")", by_rules = R"([{"columns": ["a"]}, {"columns": ["b", "c"]}])";
  for (const std::string& slots : {kOneColumnEach, by_rules})
    for (const char* type : {"Distributed", "Localized"})
      EXPECT_EQ(spaces_of(slots, {3}, type, key), (std::vector<std::string>(3, "keys0"))) << slots;
  EXPECT_EQ(spaces_of(by_rules, {1, 2}, "Distributed", key), (std::vector<std::string>{"", "keys1", "keys1"}));
  EXPECT_EQ(problems_of(kOneColumnEach, {3}, "Distributed", key), "");
}

TEST(SharedKeys, SlotsKeepTheirOwnKeysWhereThatIsNotStatedOrTheirRulesDiffer) {
  const std::string key = R"(, "identity": "key")";
  const std::vector<std::string> own(3);
  EXPECT_EQ(spaces_of(kOneColumnEach, {3}, "Distributed", ""), own) << "the default of the type";
  EXPECT_EQ(spaces_of(kOneColumnEach, {1, 1, 1}, "Distributed", key), own);
  EXPECT_EQ(spaces_of(R"([{"columns": ["a"]}, {"columns": ["b", "c"], "keys": "number"}])", {3}, "Distributed", key),
            own);
  EXPECT_EQ(spaces_of(R"([{"columns": ["a"]}, {"columns": ["b", "c"], "buckets": 9}])", {3}, "Distributed", key), own);
  EXPECT_EQ(spaces_of(R"([{"columns": ["a"], "key_space": "s"}, {"columns": ["b", "c"]}])", {3}, "Distributed", key),
            (std::vector<std::string>{"s", "", ""}));
}

TEST(SharedKeys, TheSavedConfigStatesThem) {
  const Config config = config_of_slots(kOneColumnEach, {3}, "Distributed", R"(, "identity": "key")");
  const Json& data = (*config.effective.find("layers")->array())[0];
  const Json* slots = data.find("csv")->find("slots");
  EXPECT_EQ(slots->text(), R"([{"columns":["a","b","c"],"key_space":"keys0"}])");
  Problems problems;
  const Config again = read_config(config.effective, problems);
  EXPECT_EQ(again.effective.text(), config.effective.text());
}

TEST(SharedKeys, ATableOfKeysOverSlotsThatHaveNoneInCommonIsNoted) {
  const std::string key = R"(, "identity": "key")";
  EXPECT_EQ(problems_of(R"([{"columns": ["a"]}, {"columns": ["b", "c"], "buckets": 9}])", {3}, "Distributed", key),
            "note /layers/1/sparse_embedding_hparam/identity: equal values of two slots do not share a vector, because "
            "each slot hashes or numbers its values separately; set the same \"key_space\" in both slots to share "
            "vectors\n");
  EXPECT_EQ(problems_of(R"([{"columns": ["a"]}, {"columns": ["b", "c"], "keys": "number"}])", {3}, "Distributed", key),
            "");
  EXPECT_EQ(problems_of(kOneColumnEach, {1, 1, 1}, "Distributed", key), "");
}

}  // namespace
}  // namespace hctr::test
