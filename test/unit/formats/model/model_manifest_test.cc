// The manifest of a model is found by the path of any of its files, whatever the prefix. The manifest detects any
// change of the files.
#include "formats/model/model_manifest.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/message_of.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

bool contains(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

class ModelManifestTest : public testing::Test {
 protected:
  /// Saves a model of small files and one folder (format 3.1).
  void save(const std::string& prefix, const std::string& run = "a", int64_t iteration = 60) const {
    FileSet set;
    const std::string start = (folder_ / prefix).string(), end = cat("_", iteration, ".model");
    AtomicFile& to = set.add(cat(start, "_model_", iteration, ".json"));
    for (const std::string& name : {"_dense" + end, "_dense" + end + ".layout.json", "_opt_dense" + end,
                                    "0_sparse" + end, "0_sparse" + end + ".marks", "1_sparse" + end + "/key",
                                    "1_sparse" + end + "/emb_vector", "1_opt_sparse" + end})
      set.add(start + name).write(cat(run, " ", name, " ", iteration));
    write_model_manifest(set, to,
                         {.run = run,
                          .iteration = iteration,
                          .updates = iteration - 1,
                          .config = Json(Json::Object{{"solver", "s"}}),
                          .data = Json(Json::Object{{"files", 3}}),
                          .tables = {{"wide", 1, false}, {"deep", 5, true}},
                          .prefix = start});
    set.commit();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void verify(const std::string& name) const {
    const auto manifest = manifest_of(path(name));
    ASSERT_TRUE(manifest) << name;
    manifest->verify(manifest->name_of(path(name)));
  }

  TemporaryFolder folder_;
};

TEST_F(ModelManifestTest, IsFoundByEveryFileOfItsSet) {
  save("out/m");
  for (const std::string name : {"_dense_60.model", "_opt_dense_60.model", "0_sparse_60.model", "1_sparse_60.model",
                                 "1_sparse_60.model/", "1_opt_sparse_60.model"}) {
    const auto manifest = manifest_of(path("out/m" + name));
    ASSERT_TRUE(manifest) << name;
    EXPECT_EQ(manifest->run, "a");
    EXPECT_EQ(manifest->iteration, 60);
    EXPECT_EQ(manifest->updates, 59);
    EXPECT_EQ(manifest->config.text() + manifest->data.text(), R"({"solver":"s"}{"files":3})");
    EXPECT_EQ(manifest->members.size(), 8u);
    verify("out/m" + name);
  }
  const auto manifest = manifest_of(path("out/m1_sparse_60.model"));
  EXPECT_EQ(manifest->table_of("1_sparse_60.model")->name, "deep");
  EXPECT_EQ(manifest->table_of("0_opt_sparse_60.model")->dim, 1);
  EXPECT_FALSE(manifest->table_of("_dense_60.model") || manifest->table_of("2_sparse_60.model"));
  for (const std::string other : {"out/m_dense_61.model", "out/_dense_60.model", "out/start.model", "out/m_dense_60",
                                  "none/m_dense_60.model", "out/m_model_60.json"})
    EXPECT_FALSE(manifest_of(path(other))) << other;
}

TEST_F(ModelManifestTest, GoesWithASetThatIsMovedAndRenamed) {
  save("out/");
  for (const auto& entry : fs::directory_iterator(folder_ / "out"))
    fs::create_directory(folder_ / "run"),
        fs::copy(entry.path(), folder_ / ("run/final_" + entry.path().filename().string()),
                 fs::copy_options::recursive);
  fs::remove_all(folder_ / "out");
  verify("run/final__dense_60.model");
  verify("run/final_1_sparse_60.model");
}

TEST_F(ModelManifestTest, APrefixMayEndWithDigits) {
  save("m1");  // writes m10_sparse_60.model, which could also be table 10 of prefix "m"
  save("m", "b");
  EXPECT_EQ(manifest_of(path("m10_sparse_60.model"))->run, "a");
  EXPECT_EQ(manifest_of(path("m1_sparse_60.model"))->run, "b");
  EXPECT_EQ(manifest_of(path("m1_dense_60.model"))->run, "a");
}

TEST_F(ModelManifestTest, AFileThatItDoesNotListIsOfAnotherModel) {
  save("m");
  write_file(folder_ / "m2_sparse_60.model", "x");
  EXPECT_EQ(message_of(Kind::data, [&] { manifest_of(path("m2_sparse_60.model")); }),
            cat("'", path("m2_sparse_60.model"), "' is not among the files that '", path("m_model_60.json"),
                "' lists: the file belongs to another model"));
}

/// For each file of the model, including the manifest: changes a byte, truncates the file at each position, removes it,
/// and replaces it with the file of another run.
TEST_F(ModelManifestTest, EveryChangedCutMissingOrExchangedFileIsNamed) {
  save("other/m", "b");
  save("m");
  const std::vector<std::pair<std::string, std::string>> named = {{"_dense_60.model", "_dense_60.model"},
                                                                  {"_dense_60.model.layout.json", "_dense_60.model"},
                                                                  {"0_sparse_60.model", "0_sparse_60.model"},
                                                                  {"0_sparse_60.model.marks", "0_sparse_60.model"},
                                                                  {"1_sparse_60.model/key", "1_sparse_60.model"},
                                                                  {"1_sparse_60.model/emb_vector", "1_sparse_60.model"},
                                                                  {"1_opt_sparse_60.model", "1_opt_sparse_60.model"}};
  for (const auto& names : named) {
    const std::string &file = names.first, &loaded = names.second;
    const std::string whole = read_file(path("m" + file));
    const auto expect_named = [&](Kind kind, const std::string& what) {
      const std::string message = message_of(kind, [&] { verify("m" + loaded); });
      EXPECT_TRUE(contains(message, "'" + path("m" + file) + "'")) << what << ": " << message;
      EXPECT_TRUE(contains(message, path("m_model_60.json"))) << message;
    };
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string changed = whole;
      changed[i] ^= 1;
      write_file(path("m" + file), changed);
      expect_named(Kind::data, "changed");
      write_file(path("m" + file), whole.substr(0, i));
      expect_named(Kind::data, "cut");
    }
    fs::remove(path("m" + file));
    expect_named(Kind::io, "missing");
    fs::copy_file(path("other/m" + file), path("m" + file));
    expect_named(Kind::data, "of another run");
    write_file(path("m" + file), whole);
    verify("m" + loaded);
  }
  const std::string manifest = read_file(path("m_model_60.json"));
  for (size_t i = 0; i < manifest.size(); ++i) {
    std::string changed = manifest;
    changed[i] ^= 1;
    write_file(path("m_model_60.json"), changed);
    EXPECT_TRUE(contains(message_of(Kind::data, [&] { verify("m_dense_60.model"); }), "m_model_60.json' is damaged"));
    write_file(path("m_model_60.json"), manifest.substr(0, i));
    EXPECT_TRUE(contains(message_of(Kind::data, [&] { verify("m_dense_60.model"); }), "m_model_60.json' is damaged"));
  }
}

}  // namespace
}  // namespace hctr::test
