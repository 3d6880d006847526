#include "train/encoding_differences.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

Json config_with(const std::string& data) {
  return Json::parse(R"({"layers": [{"type": "Data", )" + data + "}]}", "config");
}

std::string csv_differences(const std::string& saved, const std::string& now) {
  return encoding_differences(config_with(R"("format": "Csv", "csv": {)" + saved + "}"),
                              config_with(R"("format": "Csv", "csv": {)" + now + "}"));
}

TEST(EncodingDifferences, NamesTheFieldAndBothValuesOfSlotsInAnotherOrder) {
  const std::string text =
      csv_differences(R"("slots": [{"columns": ["ad", "site"]}])", R"("slots": [{"columns": ["site", "ad"]}])");
  EXPECT_NE(text.find(R"(/layers/0/csv/slots/0/column was "ad" and is "site")"), text.npos) << text;
  EXPECT_NE(text.find(R"(/layers/0/csv/slots/1/column was "site" and is "ad")"), text.npos) << text;
}

TEST(EncodingDifferences, AreNoneBetweenGroupsAndSpelledOutDefaults) {
  EXPECT_EQ(csv_differences(
                R"("slots": [{"columns": ["a", "b"]}], "dense": [{"columns": ["x", "y"], "transform": "standardize",
                   "mean": [1, 2], "std": 3}], "labels": ["z"], "delimiter": "\t")",
                R"("slots": [{"columns": ["a"], "keys": "hash", "buckets": 0}, {"columns": ["b"]}], "hash_seed": 0,
                   "dense": [{"columns": ["x"], "transform": ["standardize"], "mean": 1.0, "std": 3},
                   {"columns": ["y"], "transform": "standardise", "mean": 2, "std": 3}],
                   "labels": [{"column": "z"}], "trim": false)"),
            "");
}

TEST(EncodingDifferences, AreFoundInHashesTransformsMeansAndLabels) {
  const std::string saved = R"("labels": [{"column": "z", "positive": ["p", "q"]}], "hash_seed": 1,
    "dense": [{"columns": ["x"], "transform": "standardize", "mean": 5, "std": 2}], "slots": [{"columns": ["a"], "buckets": 9}])";
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string now = saved;
    now.replace(now.find(from), from.size(), to);
    return csv_differences(saved, now);
  };
  EXPECT_EQ(changed(R"("hash_seed": 1)", R"("hash_seed": 4)"), "/layers/0/csv/hash_seed was 1 and is 4");
  EXPECT_EQ(changed(R"("buckets": 9)", R"("buckets": 8)"), "/layers/0/csv/slots/0/buckets was 9 and is 8");
  EXPECT_EQ(changed(R"("buckets": 9)", R"("buckets": 9, "brackets": true)"),
            "/layers/0/csv/slots/0/brackets was false and is true");
  EXPECT_EQ(changed(R"("mean": 5)", R"("mean": 6)"), "/layers/0/csv/dense/0/mean was 5 and is 6");
  EXPECT_EQ(changed(R"(["p", "q"])", R"(["q", "p"])"), "");
  EXPECT_NE(changed(R"(["p", "q"])", R"("p")"), "");
  EXPECT_NE(changed(R"("transform": "standardize")", R"("transform": ["log", "standardize"])"), "");
}

TEST(EncodingDifferences, AreFoundInTheKeySpacesOfSlots) {
  const std::string apart = R"("slots": [{"columns": ["a"]}, {"columns": ["b"]}])",
                    shared = R"("slots": [{"columns": ["a"], "key_space": "x"}, {"columns": ["b"], "key_space": "x"}])",
                    renamed = R"("slots": [{"columns": ["a", "b"], "key_space": "y"}])",
                    alone = R"("slots": [{"columns": ["a"], "key_space": "x"}, {"columns": ["b"]}])";
  EXPECT_EQ(csv_differences(apart, shared), "/layers/0/csv/slots/1/key_space was its own and is that of slot 0");
  EXPECT_EQ(csv_differences(shared, apart), "/layers/0/csv/slots/1/key_space was that of slot 0 and is its own");
  EXPECT_EQ(csv_differences(shared, renamed), "");
  EXPECT_EQ(csv_differences(apart, alone), "");
}

TEST(EncodingDifferences, AreNoneWhereAConfigStatesTheKeysThatTypesDecidedInTraining) {
  const auto config = [](const std::string& keys) {
    return config_with(R"("format": "Parquet", "parquet": {"slots": [{"columns": ["user"])" + keys + "}]}");
  };
  const Json saved = config(""), number = config(R"(, "keys": "number")");
  EXPECT_EQ(encoding_differences(saved, number), R"(/layers/0/parquet/slots/0/keys was by type and is "number")");
  EXPECT_EQ(encoding_differences(saved, number, {{"user", KeyRule::number}}), "");
  EXPECT_EQ(encoding_differences(saved, saved, {{"user", KeyRule::number}}), "");
  EXPECT_EQ(encoding_differences(saved, number, {{"user", KeyRule::hash}}),
            R"(/layers/0/parquet/slots/0/keys was "hash" and is "number")");
}

TEST(EncodingDifferences, AreFoundInCriteoBucketsAndInTheOrderOfInputs) {
  EXPECT_EQ(encoding_differences(config_with(R"("format": "Criteo")"),
                                 config_with(R"("format": "Criteo", "criteo": {"buckets": 50})")),
            "/layers/0/criteo/buckets was 0 and is 50");
  EXPECT_NE(encoding_differences(config_with(R"("sparse": [{"top": "a"}, {"top": "b"}])"),
                                 config_with(R"("sparse": [{"top": "b"}, {"top": "a"}])")),
            "");
}

TEST(EncodingDifferences, VanishWithTheEncodingOfTheModel) {
  const Json saved = config_with(R"("format": "Csv", "csv": {"slots": [{"columns": ["a"]}]})");
  const Json now =
      config_with(R"("format": "Csv", "source": "n", "csv": {"delimiter": ";", "slots": [{"columns": ["b"]}]})");
  const Json mended = with_encoding_of(saved, now);
  EXPECT_EQ(encoding_differences(saved, mended), "");
  EXPECT_NE(mended.text().find(R"("delimiter":";")"), std::string::npos) << mended.text();
}

}  // namespace
}  // namespace hctr::test
