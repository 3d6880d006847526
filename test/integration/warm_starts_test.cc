// Training that starts from parts of models: selected layers and tables, frozen layers and tables, and vectors from
// other programs.
#include "every_table.h"
#include "formats/parquet/parquet_file.h"

namespace hctr::test {
namespace {

class WarmStarts : public RanksTest {
 protected:
  static std::string with_solver(const std::string& config, const std::string& fields) {
    return with_change(config, "\"seed\": 7", "\"seed\": 7, " + fields);
  }
  static std::string with_rule(std::string config, const std::string& section) {
    const size_t begin = config.find("\"optimizer\":"), end = config.find("\"layers\":");
    return config.replace(begin, end - begin, "\"optimizer\": {" + section + "}, ");
  }
  /// The weights of `layer`, which is fc1 or fc2. In the dense file, the weights of a layer are contiguous.
  static std::vector<float> weights_of(const Result& of, const std::string& layer) {
    const auto first = of.dense.begin(), second = first + (15 + 4) * 16 + 16;
    return layer == "fc1" ? std::vector<float>(first, second) : std::vector<float>(second, of.dense.end());
  }
  std::string said(const std::string& config, int code, const std::string& name = "said") {
    const Outcome outcome = start(config, {"[0]"}, name);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    return outcome.err;
  }
  static void expect_contains(const std::string& text, const std::vector<std::string>& pieces) {
    for (const std::string& piece : pieces)
      EXPECT_NE(text.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << text;
  }
  static std::string bytes_of(const auto& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]};
  }
  /// Encodes an array in the format of numpy.save.
  static std::string npy(const std::string& type, const std::string& shape, const std::string& bytes) {
    std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    const auto length = static_cast<uint16_t>(header.size());
    return std::string("\x93NUMPY\x01\x00", 8) + std::string(reinterpret_cast<const char*>(&length), 2) + header +
           bytes;
  }
};

TEST_F(WarmStarts, FrozenLayersAndTablesStayAndTheOthersLearn) {
  const Result all = train(with_solver(config_, R"("frozen": ["fc1", "fc2", "wide_emb", "deep_emb"])"), {"[0]"}, "all");
  for (const size_t rule : {1, 7, 9}) {  // the rules momentum, Adam on all rows, and AdamW
    SCOPED_TRACE(kRules[rule].name);
    const std::string config = with_rule(config_, kRules[rule].section);
    for (const char* gpus : {"[0]", "[0, 1]"}) {
      const Result some = train(with_solver(config, R"("frozen": ["fc1", "deep_emb"])"), {gpus}, "some");
      EXPECT_EQ(weights_of(some, "fc1"), weights_of(all, "fc1"));
      EXPECT_EQ(some.rows[1], all.rows[1]);
      EXPECT_NE(weights_of(some, "fc2"), weights_of(all, "fc2"));
      EXPECT_NE(some.rows[0], all.rows[0]);
      const Result others = train(with_solver(config, R"("frozen": ["fc2", "wide_emb"])"), {gpus}, "others");
      EXPECT_EQ(weights_of(others, "fc2"), weights_of(all, "fc2"));
      EXPECT_EQ(others.rows[0], all.rows[0]);
      EXPECT_NE(weights_of(others, "fc1"), weights_of(all, "fc1"));
      EXPECT_NE(others.rows[1], all.rows[1]);
    }
  }
}

TEST_F(WarmStarts, ChosenLayersAndTablesComeFromAnotherModel) {
  const Result first = train(with_change(config_, "\"seed\": 7", "\"seed\": 8"), {"[0]"}, "first");
  // A network with another second layer. Loads only fc1 and "deep_emb" of the saved model.
  const std::string other =
      with_change(with_change(config_, R"("top": "fc2", "fc_param": {"num_output": 1})",
                              R"("top": "fc2", "fc_param": {"num_output": 3}}, {"type": "InnerProduct", "bottom": "fc2",
                                 "top": "fc3", "fc_param": {"num_output": 1})"),
                  R"("bottom": ["fc2", "wide"])", R"("bottom": ["fc3", "wide"])");
  const std::string chosen = with_solver(other, R"("dense_model_file": "first/_dense_20.model", "load_layers": ["fc1"],
                "sparse_model_file": ["", "first/1_sparse_20.model"], "frozen": ["fc1", "deep_emb"])");
  for (const char* gpus : {"[0]", "[0, 1]"}) {
    const Result second = train(chosen, {gpus}, "second");
    EXPECT_EQ(weights_of(second, "fc1"), weights_of(first, "fc1"));
    for (const auto& [key, vector] : first.rows[1]) EXPECT_EQ(second.rows[1].at(key), vector);
    EXPECT_NE(second.rows[0], first.rows[0]);
  }
  expect_contains(said(chosen, 0), {"no file was named for the following parts, so they keep their initial values: "
                                    "all layers but 'fc1', table 'wide_emb'"});
  expect_contains(said(with_change(chosen, R"("load_layers": ["fc1"])", R"("load_layers": ["fc2"])"), 4),
                  {"'first/_dense_20.model' has 'fc2/weight", " of shape [16,1], but this config has [16,3]"});
  expect_contains(said(with_change(chosen, R"("load_layers": ["fc1"])", R"("load_layers": ["fc1", "fc3"])"), 4),
                  {"has no 'fc3/", "the layers of the file are fc1 or fc2"});
  expect_contains(said(with_change(chosen, R"("load_layers": ["fc1"],)", ""), 4),
                  {"belongs to another model: its weight 2 is"});
  fs::remove(folder_ / "first" / "_model_20.json");
  fs::remove(folder_ / "first" / "_dense_20.model.layout.json");
  expect_contains(said(chosen, 4),
                  {"the file 'first/_dense_20.model.layout.json' with the positions of layers does not exist"});
}

TEST_F(WarmStarts, SeveralModelsAreCombinedWhereTheConfigSaysSo) {
  const Result first = train(with_change(config_, "\"seed\": 7", "\"seed\": 8"), {"[0]"}, "first");
  const Result other = train(with_change(config_, "\"seed\": 7", "\"seed\": 9"), {"[0]"}, "other");
  const std::string both = with_solver(
      config_, R"("dense_model_file": "first/_dense_20.model", "frozen": ["fc1", "fc2", "wide_emb", "deep_emb"],
                  "sparse_model_file": ["first/0_sparse_20.model", "other/1_sparse_20.model"])");
  expect_contains(said(both, 4), {"must belong to one model", "\"combine_models\": true"});
  const Result combined = train(with_solver(both, "\"combine_models\": true"), {"[0]"}, "combined");
  EXPECT_EQ(combined.dense, first.dense);
  EXPECT_EQ(combined.rows[0], first.rows[0]);
  EXPECT_EQ(combined.rows[1], other.rows[1]);
}

TEST_F(WarmStarts, TablesStartFromPretrainedVectors) {
  const std::vector<int64_t> keys = {3, 310, 5, 320, -7};
  std::vector<float> vectors;
  for (size_t i = 0; i < keys.size() * 5; ++i) vectors.push_back(0.25f * static_cast<float>(i) - 1);
  std::vector<double> doubles(vectors.begin(), vectors.end());
  write_file(folder_ / "keys.npy", npy("<i8", "(5,)", bytes_of(keys)));
  write_file(folder_ / "vectors.npy", npy("<f4", "(5, 5)", bytes_of(vectors)));
  write_file(folder_ / "doubles.npy", npy("<f8", "(5, 5)", bytes_of(doubles)));
  const auto config = [&](const std::string& from) {
    return with_solver(config_,
                       cat(R"("frozen": ["deep_emb"], "pretrained": [{"table": "deep_emb", "slot": 1, )", from, "}]"));
  };
  const auto expect_vectors = [&](const std::string& from, const char* gpus) {
    const Result result = train(config(from), {gpus}, "second");
    for (size_t i = 0; i < keys.size(); ++i)
      EXPECT_EQ(result.rows[1].at({1, keys[i]}), std::vector<float>(vectors.begin() + static_cast<int64_t>(i) * 5,
                                                                    vectors.begin() + static_cast<int64_t>(i + 1) * 5));
    EXPECT_GT(result.rows[1].size(), keys.size()) << "keys of the data";
  };
  const std::string of_npy = R"("keys": "keys.npy", "vectors": "vectors.npy")";
  for (const char* gpus : {"[0]", "[0, 1]"}) expect_vectors(of_npy, gpus);
  expect_vectors(R"("keys": "keys.npy", "vectors": "doubles.npy")", "[0]");
  expect_contains(said(config(of_npy), 0), {"Table 'deep_emb': 5 pretrained vectors from 'vectors.npy'"});

  const auto refused = [&](const std::string& name, const std::string& bytes, const std::string& piece) {
    const std::string whole = read_file(folder_ / name);
    write_file(folder_ / name, bytes);
    expect_contains(said(config(of_npy), 4), {piece});
    write_file(folder_ / name, whole);
  };
  refused("vectors.npy", npy("<f4", "(4, 5)", bytes_of(vectors).substr(20)),
          "has 5 keys, but 'vectors.npy' has 4 vectors");
  refused("vectors.npy", npy("<f4", "(5, 4)", bytes_of(vectors).substr(20)), "has embedding_vec_size 5");
  refused("vectors.npy", npy("<f4", "(5, 5)", bytes_of(vectors).substr(1)), "the file is incomplete");
  refused("vectors.npy", npy("<c8", "(5, 5)", bytes_of(doubles)), "holds \"<c8\"");
  refused("vectors.npy", "not an array", "is not a file of numpy.save");
  refused("keys.npy", npy("<i8", "(5,)", bytes_of(std::vector<int64_t>{1, 2, 3, 4, 3})),
          "key 3 of slot 1 occurs twice");
  vectors[7] = std::nanf("");
  refused("vectors.npy", npy("<f4", "(5, 5)", bytes_of(vectors)), "number 2 of row 1, of key 310, is nan");
  vectors[7] = 0.75f;

  if (!why_no_parquet().empty()) GTEST_SKIP() << why_no_parquet();
  const auto write_parquet = [&](const std::string& name, const char* key_name, int64_t numbers) {
    const ParquetField fields[] = {{key_name, ParquetType::i64, false, ""}, {"vector", ParquetType::f32, true, ""}};
    std::string bytes;
    const ParquetSink sink{&bytes, [](void* self, const void* from, int64_t count) {
                             static_cast<std::string*>(self)->append(static_cast<const char*>(from),
                                                                     static_cast<size_t>(count));
                             return true;
                           }};
    ParquetWriter* made = nullptr;
    ASSERT_EQ(parquet_plugin().create(fields, 2, 1, sink, &made), nullptr);
    const std::unique_ptr<ParquetWriter> writer(made);
    std::vector<int32_t> list;
    for (size_t i = 0; i <= keys.size(); ++i) list.push_back(static_cast<int32_t>(static_cast<int64_t>(i) * numbers));
    ParquetValues columns[2];
    columns[0].rows = columns[1].rows = static_cast<int64_t>(keys.size());
    columns[0].values = keys.data();
    columns[1].values = vectors.data();
    columns[1].list = list.data();
    ASSERT_EQ(writer->write(columns, columns[0].rows), nullptr);
    ASSERT_EQ(writer->finish(), nullptr);
    write_file(folder_ / name, bytes);
  };
  write_parquet("vectors.parquet", "key", 5);
  expect_vectors(R"("file": "vectors.parquet")", "[0]");
  write_parquet("short.parquet", "key", 4);
  expect_contains(said(config(R"("file": "short.parquet")"), 4),
                  {"row 0 of 'short.parquet' has 4 numbers in its vector"});
  write_parquet("named.parquet", "id", 5);
  expect_contains(said(config(R"("file": "named.parquet")"), 4), {"has no column \"key\"; it has id or vector"});
}

TEST_F(WarmStarts, NamesAreChecked) {
  const auto problem = [&](const std::string& fields, const std::string& piece) {
    expect_contains(said(with_solver(config_, fields), 3), {piece});
  };
  problem(R"("frozen": ["fc9"])", "/solver/frozen/0: no layer or embedding is called \"fc9\"; did you mean \"fc");
  problem(R"("load_layers": ["fc1"])", "/solver/load_layers: load_layers needs \"dense_model_file\"");
  problem(R"("pretrained": [{"table": "deep", "file": "x.parquet"}])", "no embedding is called \"deep\"");
  problem(R"("pretrained": [{"table": "deep_emb"}])", "needs either \"file\", or \"keys\" and \"vectors\"");
  problem(R"("pretrained": [{"table": "deep_emb", "keys": "a.npy"}])", "needs either");
  problem(R"("sparse_model_file": ["", "a"], "sparse_opt_states_file": ["b", "c"])",
          "/solver/sparse_opt_states_file/0");
}

}  // namespace
}  // namespace hctr::test
