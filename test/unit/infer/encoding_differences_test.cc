#include "infer/encoding_differences.h"

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

TEST(EncodingDifferences, AreFoundInTheNotationOfNumbers) {
  const auto with = [&](const std::string& more) {
    return R"("labels": ["y"], "dense": [{"columns": ["x"])" + more + "}]";
  };
  const std::string plain = with(""), own = with(R"(, "number_format": "1.234,5")"),
                    all = plain + R"(, "number_format": "1.234,5")";
  EXPECT_EQ(csv_differences(plain, own), R"(/layers/0/csv/dense/0/number_format was "1234.5" and is "1.234,5")");
  EXPECT_EQ(csv_differences(own, all), R"(/layers/0/csv/labels/0/number_format was not there and is "1.234,5")");
  EXPECT_EQ(csv_differences(plain, with(R"(, "number_format": "1234.5")")), "");
  EXPECT_EQ(csv_differences(plain, with(R"(, "unit": "%")")), R"(/layers/0/csv/dense/0/unit was "" and is "%")");
  const auto label = [](const std::string& more) {
    return R"("labels": [{"column": "y")" + more + R"(}], "dense": [], "slots": [])";
  };
  EXPECT_NE(csv_differences(label(""), label(R"(, "number_format": "1234,5")")), "");
  const std::string text = R"(, "positive": "yes")";
  EXPECT_EQ(csv_differences(label(text), label(text) + R"(, "number_format": "1234,5")"), "") << "texts are no numbers";
  const auto of = [](const std::string& format, const std::string& dense_columns) {
    return config_with(R"("format": ")" + format + R"(", ")" + (format == "Csv" ? "csv" : "parquet") +
                       R"(": {"slots": [{"columns": ["a"], "keys": "hash"}], "dense": [)" + dense_columns + "]}");
  };
  EXPECT_EQ(encoding_differences(of("Csv", R"({"columns": ["x"], "number_format": "1.234,5"})"),
                                 of("Parquet", R"({"columns": ["x"]})")),
            "")
      << "that says how a file is written";
  EXPECT_NE(
      encoding_differences(of("Csv", R"({"columns": ["x"], "unit": "%"})"), of("Parquet", R"({"columns": ["x"]})")),
      "");
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

TEST(EncodingDifferences, AreNoneBetweenALeftOutDefaultAndAStatedOneThatMeansTheSame) {
  EXPECT_EQ(csv_differences(R"("dense": [{"columns": ["x"], "transform": "log"}])",
                            R"("dense": [{"columns": ["x"], "transform": "log", "default": 0}])"),
            "");
  EXPECT_EQ(csv_differences(R"("dense": [{"columns": ["x"], "transform": "standardize"}])",
                            R"("dense": [{"columns": ["x"], "transform": "standardize", "default": 0.0}])"),
            "");
  EXPECT_EQ(csv_differences(R"("dense": [{"columns": ["x"]}])", R"("dense": [{"columns": ["x"], "default": -1}])"),
            "/layers/0/csv/dense/0/default was 0 and is -1");
  EXPECT_EQ(encoding_differences(
                config_with(R"("format": "Parquet", "parquet": {"default_dense": 3, "default_key": "u",
                               "dense": [{"columns": ["x"]}], "slots": [{"columns": ["a"]}]})"),
                config_with(R"("format": "Parquet", "parquet": {"dense": [{"columns": ["x"], "default": 3.0}],
                               "slots": [{"columns": ["a"], "default": "u"}]})")),
            "");
}

TEST(EncodingDifferences, AreFoundInTheLeastPositiveLabel) {
  const auto at_least = [](const std::string& number) {
    return R"("labels": [{"column": "stars", "positive": {"at_least": )" + number + "}}]";
  };
  EXPECT_EQ(csv_differences(at_least("4"), at_least("4.0")), "");
  EXPECT_EQ(csv_differences(at_least("4"), at_least("3")),
            R"(/layers/0/csv/labels/0/positive was {"at_least": 4} and is {"at_least": 3})");
}

TEST(EncodingDifferences, AreFoundInSizesThatMoveKeys) {
  const auto raw = [](const std::string& sizes) {
    return config_with(R"("format": "Raw", "slot_size_array": )" + sizes);
  };
  EXPECT_EQ(encoding_differences(raw("[5, 7]"), raw("[6, 7]")), "/layers/0/slot_size_array was [5, 7] and is [6, 7]");
  EXPECT_NE(encoding_differences(raw("[5, 7]"), raw("[]")), "");
  EXPECT_NE(encoding_differences(raw("[]"), raw("[5, 7]")), "");
}

std::string between_formats(const std::string& csv, const std::string& parquet) {
  return encoding_differences(config_with(R"("format": "Csv", "csv": {)" + csv + "}"),
                              config_with(R"("format": "Parquet", "parquet": {)" + parquet + "}"));
}

TEST(EncodingDifferences, OfCsvAndParquetAreThoseOfTheirColumns) {
  const std::string csv =
      R"("hash_seed": 3, "trim": true, "missing": ["?"], "labels": [{"column": "y", "positive": "yes"}],
    "dense": [{"columns": ["x"], "transform": "log"}], "slots": [{"columns": ["a", "b"], "buckets": 50}])";
  const std::string parquet = R"("hash_seed": 3, "labels": ["y"], "dense": [{"columns": ["x"], "transform": "log"}],
    "slots": [{"columns": ["a"], "keys": "hash", "buckets": 50}, {"columns": ["b"], "keys": "hash", "buckets": 50}])";
  EXPECT_EQ(between_formats(csv, parquet), "") << "the same text has the same key";
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string now = parquet;
    now.replace(now.find(from), from.size(), to);
    return between_formats(csv, now);
  };
  EXPECT_EQ(changed(R"(["b"])", R"(["c"])"),
            R"(/layers/0/csv/slots/1/column was "b" and /layers/0/parquet/slots/1/column is "c")");
  EXPECT_EQ(changed(R"("hash_seed": 3)", R"("hash_seed": 4)"),
            "/layers/0/csv/hash_seed was 3 and /layers/0/parquet/hash_seed is 4");
  EXPECT_NE(changed(R"("buckets": 50)", R"("buckets": 60)"), "");
  EXPECT_NE(changed(R"("log")", R"("none")"), "");
  EXPECT_EQ(changed(R"("keys": "hash", )", ""), "") << "that is compared once the types of the columns are read";
  EXPECT_TRUE(is_between_formats(changed(R"(["b"])", R"(["c"])")));
  EXPECT_FALSE(is_of_formats(changed(R"(["b"])", R"(["c"])")));
}

TEST(EncodingDifferences, OfFormatsThatMakeKeysInAnotherWayAreTheFormats) {
  const std::string text = between_formats(R"("slots": [{"columns": ["a"]}])", R"("labels": ["y"])");
  EXPECT_EQ(text, R"(/layers/0/format was "Csv" and is "Parquet")") << "metadata name the columns";
  EXPECT_TRUE(is_of_formats(text));
  EXPECT_NE(encoding_differences(config_with(R"("format": "Criteo")"), config_with(R"("format": "Raw")")), "");
  EXPECT_NE(encoding_differences(config_with(R"("feature_spec": "a.yaml")"), config_with(R"("format": "Raw")")), "");
  EXPECT_EQ(encoding_differences(config_with(R"("format": "RawAsync")"), config_with(R"("format": "Raw")")), "");
}

}  // namespace
}  // namespace hctr::test
