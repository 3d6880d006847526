// The list of files that a Data layer reads.
#include "formats/catalog/section_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/problems.h"
#include "formats/catalog/data_schema.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

TEST(SectionFiles, AreListsDataFilesAndVocabularies) {
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  for (const char* name : {"a.csv", "b.csv", "parts/p.csv", "parts/q.csv"}) write_text(at(name), "click,city\n1,x\n");
  write_text(at("list.txt"), cat("2\n", at("a.csv"), "\n", at("b.csv"), "\n"));
  write_text(at("cities.txt"), "x\ny\n");
  Problems problems;
  const DataSection section = data_section_of(
      Json(Json::Object{
          {"layers", Json::Array{Json::parse(cat(R"({
        "type": "Data", "format": "Csv", "source": ")",
                                                 at("list.txt"), R"(", "eval_source": ")", at("parts"), R"(",
        "csv": {"labels": ["click"], "slots": [{"columns": ["city"], "keys": "vocabulary", "vocabulary": ")",
                                                 at("cities.txt"), R"("}]},
        "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 0},
        "sparse": [{"top": "keys", "slot_num": 1, "nnz_per_slot": 1}]})"),
                                             "config")}}}),
      problems);
  problems.throw_if_any("config");
  const std::vector<fs::path> files = files_of_section(section);
  for (const char* name : {"list.txt", "a.csv", "b.csv", "parts/p.csv", "parts/q.csv", "cities.txt"})
    EXPECT_TRUE(std::any_of(files.begin(), files.end(), [&](const fs::path& file) { return file == at(name); }))
        << name;
  EXPECT_EQ(files.size(), 6u);
}

}  // namespace
}  // namespace hctr::test
