#include "formats/data/data_section.h"

#include <gtest/gtest.h>

#include "formats/catalog/data_schema.h"
#include "formats/text/csv_set.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

DataSection parsed(const std::string& text, Problems& problems) {
  return data_section_of(Json::parse("{\"layers\": [" + text + "]}", "test.json"), problems);
}

DataSection parsed(const std::string& text) {
  Problems problems;
  DataSection section = parsed(text, problems);
  problems.throw_if_any("test.json");
  EXPECT_TRUE(problems.warnings().empty());
  return section;
}

std::string errors_of(const std::string& text) {
  return message_of([&] { parsed(text); });
}

std::string with_sparse(const std::string& sparse) {
  return R"({"type": "Data", "source": "list.txt", "label": {"top": "label", "label_dim": 1},
             "dense": {"top": "dense", "dense_dim": 13}, "sparse": [)" +
         sparse + "]}";
}

TEST(DataSection, ReadsTheSpellingOfV21) {
  const DataSection section = parsed(R"({
    "name": "data", "type": "Data", "source": "./file_list.txt", "eval_source": "./file_list_test.txt", "check": "Sum",
    "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 13},
    "sparse": [
      {"top": "wide_data", "type": "DistributedSlot", "max_feature_num_per_sample": 30, "slot_num": 1},
      {"top": "data1", "type": "LocalizedSlot", "max_feature_num_per_sample": 30, "slot_num": 26}]})");
  EXPECT_EQ(section.source, "./file_list.txt");
  EXPECT_EQ(section.check, Check::sum);
  EXPECT_EQ(section.slots(), 27);
  EXPECT_EQ(section.sparse[1].type, SparseType::localized_slot);
  EXPECT_EQ(section.sparse[1].max_nnz, 30);
  const BatchShape shape = batch_shape(section, 100);
  EXPECT_EQ(shape.tables[0].key_capacity, 30 * 100);
  EXPECT_EQ(shape.tables[1].key_capacity, 30 * 100);
  EXPECT_EQ(shape.label_dim, 1);
  EXPECT_EQ(shape.dense_dim, 13);
}

TEST(DataSection, WeightsHaveTheNotationThatIsStatedOfThem) {
  const auto layer = [](const std::string& weight) {
    return R"({"type": "Data", "format": "Csv", "source": "a", "label": {"top": "y"}, "dense": {"top": "d"},
      "sample_weight": {"top": "w", "column": "kg")" +
           weight + R"(}, "csv": {"labels": ["click"], "slots": [{"columns": ["s"]}]}, "sparse": [{"top": "s"}]})";
  };
  const DataSection section = parsed(layer(R"(, "number_format": "1.234,5", "unit": "kg")"));
  const LabelColumn& weight = section.options.get<CsvOptions>().labels.back();
  EXPECT_EQ(weight.column, "kg");
  EXPECT_EQ(weight.number_format, NumberFormat::points_comma);
  EXPECT_EQ(weight.unit, "kg");
  EXPECT_SAYS(errors_of(layer(R"(, "unit": "1")")), "/layers/0/sample_weight/unit");
  EXPECT_SAYS(errors_of(layer(R"(, "number_format": "1 2")")), "number_format");
}

TEST(DataSection, ReadsTheSpellingOfV23AndV30) {
  const DataSection section = parsed(R"({
    "name": "data", "type": "Data", "format": "Norm", "source": "a", "eval_source": "b", "check": "None",
    "cache_eval_data": true, "num_samples": 1000, "eval_num_samples": 100, "slot_size_array": [10, 20],
    "float_label_dense": false, "num_workers": 8, "label": {"top": "label", "label_dim": 1},
    "dense": {"top": "dense", "dense_dim": 0},
    "sparse": [{"top": "data1", "type": "LocalizedSlot", "max_feature_num_per_sample": 30, "max_nnz": 1, "slot_num": 2}]})");
  EXPECT_EQ(section.num_workers, 8);
  EXPECT_EQ(section.slot_size_array, (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(batch_shape(section, 7).tables[0].key_capacity, 2 * 7) << "max_nnz * slot_num is the smaller limit";
}

TEST(DataSection, ReadsTheSpellingOfV31) {
  const DataSection list =
      parsed(with_sparse(R"({"top": "x", "slot_num": 3, "nnz_per_slot": [1, 4, 2], "is_fixed_length": 0})"));
  EXPECT_EQ(list.sparse[0].max_nnz, 4);
  EXPECT_EQ(list.sparse[0].max_feature_num_per_sample, 7);
  const DataSection one =
      parsed(with_sparse(R"({"top": "x", "slot_num": 3, "nnz_per_slot": 2, "is_fixed_length": true})"));
  EXPECT_EQ(one.sparse[0].max_nnz, 2);
  EXPECT_EQ(one.sparse[0].max_feature_num_per_sample, 6);
}

TEST(DataSection, ASlotMayKeepTheFirstOrTheLastOfItsKeys) {
  const DataSection last =
      parsed(with_sparse(R"({"top": "x", "slot_num": 3, "nnz_per_slot": [1, 40, 20], "keep_last": 10})"));
  const SparseInput& input = last.sparse[0];
  EXPECT_EQ(input.max_keys(), 61) << "what the data may hold";
  EXPECT_EQ(std::vector<int64_t>(
                {input.kept_nnz(0), input.kept_nnz(1), input.kept_nnz(2), input.kept_places(), input.kept_keys()}),
            (std::vector<int64_t>{1, 10, 10, 21, 21}));
  const BatchShape shape = batch_shape(last, 7);
  EXPECT_EQ(shape.tables[0].key_capacity, 21 * 7);
  EXPECT_EQ(shape.tables[0].keep, 10);
  EXPECT_TRUE(shape.tables[0].keep_last);
  const DataSection first =
      parsed(with_sparse(R"({"top": "x", "slot_num": 2, "max_feature_num_per_sample": 5, "keep_first": 3})"));
  EXPECT_EQ(first.sparse[0].kept_places(), 6);
  EXPECT_EQ(first.sparse[0].kept_keys(), 5);
  EXPECT_FALSE(batch_shape(first, 1).tables[0].keep_last);
}

TEST(DataSection, TheNewerOfTwoSpellingsDecides) {
  Problems problems;
  const DataSection section = parsed(
      with_sparse(
          R"({"top": "x", "slot_num": 2, "nnz_per_slot": [1, 2], "max_feature_num_per_sample": 9, "max_nnz": 9})"),
      problems);
  EXPECT_FALSE(problems.any_error());
  EXPECT_EQ(section.sparse[0].max_keys(), 3);
  ASSERT_EQ(problems.notes().size(), 2u);
  EXPECT_EQ(problems.notes()[0].pointer, "/layers/0/sparse/0/max_feature_num_per_sample");
  EXPECT_EQ(problems.notes()[1].message, "has no effect: \"nnz_per_slot\" sets the limit to 2 instead of 9");
}

TEST(DataSection, ItsEffectiveFormReadsBackTheSame) {
  for (const char* sparse : {R"({"top": "x", "slot_num": 3, "nnz_per_slot": [1, 4, 2]})",
                             R"({"top": "x", "slot_num": 3, "max_feature_num_per_sample": 5})"}) {
    Json effective = data_schema().effective(parsed(with_sparse(sparse)));
    effective.set("type", "Data");
    const DataSection again = parsed(effective.text());
    EXPECT_EQ(again.sparse[0].max_keys(), parsed(with_sparse(sparse)).sparse[0].max_keys());
  }
}

TEST(DataSection, EveryRuleNamesItsPlace) {
  const char* good = R"({"top": "x", "slot_num": 3, "max_feature_num_per_sample": 5})";
  EXPECT_EQ(errors_of(with_sparse(good)), "");
  EXPECT_SAYS(errors_of(with_sparse(R"({"top": "x", "slot_num": 3})")),
              "/layers/0/sparse/0: sparse input needs \"max_feature_num_per_sample\"");
  EXPECT_SAYS(errors_of(with_sparse(R"({"top": "x", "slot_num": 0, "max_feature_num_per_sample": 5})")),
              "/layers/0/sparse/0/slot_num: expected an integer, at least 1");
  EXPECT_SAYS(errors_of(with_sparse(R"({"top": "x", "slot_num": 3, "nnz_per_slot": [1, 2]})")),
              "/layers/0/sparse/0/nnz_per_slot: has 2 numbers for 3 slots");
  EXPECT_SAYS(errors_of(with_sparse(
                  R"({"top": "x", "slot_num": 1, "max_feature_num_per_sample": 5, "keep_first": 2, "keep_last": 2})")),
              "/layers/0/sparse/0/keep_first: a slot keeps either its first or its last keys, but \"keep_first\" "
              "and \"keep_last\" are both set: remove one of the two");
  EXPECT_SAYS(errors_of(with_sparse(cat(good, ", ", good))),
              "/layers/0/sparse/1/top: \"x\" is already the name of /layers/0/sparse/0/top");
  EXPECT_SAYS(
      errors_of(
          R"({"type": "Data", "source": "", "label": {"top": "l", "label_dim": 0}, "dense": {"top": "d"}, "sparse": []})"),
      "/layers/0/label/label_dim: expected an integer, at least 1");
  EXPECT_SAYS(
      errors_of(
          R"({"type": "Data", "source": "", "label": {"top": "l", "label_dim": 1}, "dense": {"top": "d", "dense_dim": 0}, "sparse": []})"),
      "/layers/0/source: expected the path of a file list");
  EXPECT_SAYS(
      errors_of(
          R"({"type": "Data", "source": "kafka://localhost/clicks", "follow": true, "label": {"top": "l", "label_dim": 1}, "dense": {"top": "d", "dense_dim": 0}, "sparse": []})"),
      "/layers/0/source: messages of a topic are lines of text: expected format Criteo or Csv");
  EXPECT_SAYS(errors_of(R"({"type": "Dat"})"), "/layers/0/type: expected \"Data\", found the string \"Dat\"");
  EXPECT_SAYS(message_of([] {
                Problems problems;
                data_section_of(Json::parse("{}", "x"), problems);
                problems.throw_if_any("x");
              }),
              "/layers: expected an array");
}

TEST(DataSection, ParquetNamesAsManyColumnsAsThereAre) {
  std::string text = with_sparse(R"({"top": "x", "slot_num": 3, "max_feature_num_per_sample": 5})");
  text.insert(
      1,
      R"("format": "Parquet", "parquet": {"labels": ["a", "b"], "slots": [{"columns": ["c"]}]}, "slot_size_array": [1, 2], )");
  const std::string errors = errors_of(text);
  EXPECT_SAYS(errors, "but \"labels\" of \"parquet\" names 2 columns");
  EXPECT_SAYS(errors, "/layers/0/sparse: has 3 slots in total, but \"slots\" of \"parquet\" names 1 columns");
  EXPECT_SAYS(errors,
              "/layers/0/slot_size_array: has 2 numbers for 3 slots; expected one number for each slot, to shift "
              "its keys");
}

TEST(DataSection, WidthsThatDoNotFollowAreNeeded) {
  const std::string text =
      R"({"type": "Data", "source": "list.txt", "label": {"top": "label"}, "dense": {"top": "dense"},
                               "sparse": [{"top": "x"}]})";
  const std::string errors = errors_of(text);
  EXPECT_SAYS(errors, "/layers/0/label: label needs \"label_dim\": the number of labels per sample");
  EXPECT_SAYS(errors, "/layers/0/dense: dense needs \"dense_dim\"");
  EXPECT_SAYS(errors, "/layers/0/sparse/0: sparse input needs \"slot_num\"");
  EXPECT_EQ(parsed(with_sparse(R"({"top": "x", "slot_num": 3, "max_nnz": 2})")).sparse[0].max_keys(), 6);
}

TEST(DataSection, WidthsOfParquetFollowFromTheColumnsThatItNames) {
  const auto parquet = [](const std::string& columns) {
    return cat(R"({"type": "Data", "format": "Parquet", "source": "a", "label": {"top": "l"}, "dense": {"top": "d"},
                   "sparse": [{"top": "x"}], "parquet": {)",
               columns, "}}");
  };
  const DataSection all = parsed(parquet(
      R"("labels": ["y", {"column": "z", "positive": "yes"}], "dense": [{"columns": ["a"]}],
         "slots": [{"columns": ["b", "c"]}])"));
  EXPECT_EQ(all.label.label_dim, 2);
  EXPECT_EQ(all.dense.dense_dim, 1);
  EXPECT_EQ(all.sparse[0].slot_num, 2);
  EXPECT_EQ(all.sparse[0].limits().max_nnz, 1);
  // the config lists only the labels, so it must state how many of the other columns in _metadata.json to read
  const std::string errors = errors_of(parquet(R"("labels": ["y"])"));
  EXPECT_SAYS(errors, "dense needs \"dense_dim\"");
  EXPECT_SAYS(errors, "sparse input needs \"slot_num\"");
}

TEST(DataSection, WidthsOfCriteoFollowFromItsOptions) {
  const auto criteo = [](const std::string& options, const std::string& sparse) {
    return parsed(cat(R"({"type": "Data", "format": "Criteo", "source": "a", "criteo": {)", options,
                      R"(}, "label": {"top": "l"}, "dense": {"top": "d"}, "sparse": [)", sparse, "]}"));
  };
  const DataSection plain = criteo("", R"({"top": "x"})");
  EXPECT_EQ(plain.label.label_dim, 1);
  EXPECT_EQ(plain.dense.dense_dim, 13);
  EXPECT_EQ(plain.sparse[0].slot_num, 26);
  EXPECT_EQ(plain.sparse[0].max_keys(), 26);
  const DataSection wide =
      criteo(R"("wide": "cross", "integers": "buckets")", R"({"top": "wide", "slot_num": 1}, {"top": "deep"})");
  EXPECT_EQ(wide.dense.dense_dim, 0);
  EXPECT_EQ(wide.sparse[0].max_keys(), 2);
  EXPECT_EQ(wide.sparse[1].slot_num, 39);
  EXPECT_EQ(wide.sparse[1].limits().max_nnz, 1);
}

TEST(DataSection, WidthsOfAFeatureSpecificationAreThoseOfItsChannels) {
  const Folder folder;
  write_text(folder / "spec.yaml", R"(feature_spec:
  click: {dtype: bool}
  age: {dtype: float32}
  user: {dtype: int32, cardinality: 10}
  city: {dtype: int32, cardinality: 10}
  item: {dtype: int32, cardinality: 10}
source_spec:
  train:
    - {type: csv, features: [click, age, user, city, item], files: [a.csv]}
channel_spec:
  label: [click]
  numerical: [age]
  categorical: [user, city]
  items: [item]
)");
  const DataSection section =
      parsed(cat(R"({"type": "Data", "feature_spec": )", Json((folder / "spec.yaml").string()).text(),
                 R"(, "label": {"top": "l"}, "dense": {"top": "d"},
                                            "sparse": [{"top": "keys"}, {"top": "items"}]})"));
  EXPECT_EQ(section.label.label_dim, 1);
  EXPECT_EQ(section.dense.dense_dim, 1);
  EXPECT_EQ(section.sparse[0].slot_num, 2);
  EXPECT_EQ(section.sparse[1].slot_num, 1);
  EXPECT_EQ(section.sparse[0].max_keys(), 2);
}

TEST(DataSection, WordsOfFormatsAreCorrected) {
  std::string text = with_sparse("");
  text.insert(1, "\"format\": \"norm\", ");
  EXPECT_SAYS(errors_of(text), "did you mean \"Norm\"?");
}

TEST(DataSection, ASlotSizeArrayOfAnotherLengthIsAWarning) {
  std::string text = with_sparse(R"({"top": "x", "slot_num": 3, "max_feature_num_per_sample": 5})");
  text.insert(1, "\"slot_size_array\": [1, 2], ");
  Problems problems;
  parsed(text, problems);
  EXPECT_FALSE(problems.any_error());
  ASSERT_EQ(problems.warnings().size(), 1u);
  EXPECT_EQ(problems.warnings()[0].pointer, "/layers/0/slot_size_array");
}

TEST(BatchShape, MoreKeysThan32BitsCountIsAConfigError) {
  const DataSection section = section_of(1, 0, {input_of("x", 1000, 100, 100000)});
  EXPECT_SAYS(message_of([&] { batch_shape(section, 1 << 20); }),
              "config: sparse input \"x\": a batch of 1048576 samples could hold");
}

TEST(DataSection, AsyncShuffleIsAWindowOfSamples) {
  const auto with = [](const std::string& fields) {
    Problems problems;
    const DataSection section = parsed(
        R"({"type": "Data", "source": "a", "label": {"top": "l", "label_dim": 1}, "dense": {"top": "d", "dense_dim": 1},
            "sparse": [{"top": "k", "slot_num": 1, "max_feature_num_per_sample": 1}])" +
            fields + "}",
        problems);
    std::string text = cat(section.shuffle, "\n");
    for (const auto& e : problems.errors()) text += "error " + e.pointer + ": " + e.message + "\n";
    for (const auto& e : problems.notes()) text += "note " + e.pointer + ": " + e.message + "\n";
    return text;
  };
  EXPECT_EQ(with(R"(, "async_param": {"num_threads": 4, "shuffle": true})"),
            "1048576\nnote /layers/0/async_param/shuffle: taken as \"shuffle\": 1048576 of the Data layer, the "
            "number of samples in the shuffle window; set \"shuffle\" for another size\n");
  EXPECT_EQ(with(R"(, "async_param": {"shuffle": true}, "shuffle": 500)"), "500\n");
  EXPECT_EQ(with(R"(, "async_param": {"num_threads": 4})"),
            "0\nnote /layers/0/async_param: \"async_param\" is accepted and has no effect: this program reads data in "
            "another way\n");
  EXPECT_EQ(with(R"(, "async_param": {"shuffle": 2})"),
            "0\nerror /layers/0/async_param/shuffle: expected true or false, found the integer 2\n");
}

}  // namespace
}  // namespace hctr::data_test
