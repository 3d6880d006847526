// The files that --apply reads have a checksum that covers every byte.
#include "prepare/preprocess/saved_columns.h"

#include <gtest/gtest.h>

#include "config/checked_json.h"
#include "core/base/expect.h"
#include "formats/data/numbering.h"
#include "prepare/preprocess/preprocess_report.h"
#include "support/run_program.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

struct SavedColumnsTest : ::testing::Test {
  SavedColumnsTest() {
    write_text(folder / "rows.csv", "label,d,c\n1,2,x\n0,3,y\n1,,x\n");
    options.table = named_table("label,d,c", ',', {.labels = {"label"}, .numbers = {"d"}, .categories = {"c"}});
    options.table.header = "label,d,c";
    options.inputs = {(folder / "rows.csv").string()};
    options.folder = folder / "out";
    options.dense.normalize = Normalize::standard;
    const PreprocessSummary summary = preprocess(options, Log::silent());
    write_vocabularies(vocabulary(), summary.fitted);
    write_text(description(), with_checksum(describe_preprocessed(options, summary)));
  }
  fs::path vocabulary() const { return options.folder / kVocabularyFile; }
  fs::path description() const { return options.folder / "preprocess.json"; }
  /// Returns the kind of the Error of reading, if any. Appends warnings to `warnings`.
  std::optional<Kind> error_of_reading() {
    warnings.clear();
    try {
      read_columns(description(), Log([&](Level, std::string_view line) { warnings += cat(line, "\n"); }));
    } catch (const Error& error) {
      return error.kind();
    }
    return std::nullopt;
  }

  Folder folder;
  PreprocessOptions options;
  std::string warnings;
};

TEST_F(SavedColumnsTest, AreNotReadFromAFileOfWhichAByteIsChangedOrTheEndIsMissing) {
  EXPECT_EQ(error_of_reading(), std::nullopt);
  EXPECT_EQ(warnings, "");
  const auto replace = [](const fs::path& path, const std::string& bytes) {
    // write_text() waits for the disk; removing the file and writing a new one does not.
    fs::remove(path);
    test::write_file(path, bytes);
  };
  for (const fs::path& path : {vocabulary(), description()}) {
    const std::string whole = read_text(path, "file");
    for (size_t at = 0; at < whole.size(); ++at)
      for (const int change : {1, 3, 0x20, 0xff}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ change);
        replace(path, bytes);
        ASSERT_EQ(error_of_reading(), Kind::data) << path << ", byte " << at << ", bits " << change;
      }
    for (size_t size = 0; size < whole.size(); ++size) {
      replace(path, whole.substr(0, size));
      ASSERT_EQ(error_of_reading(), Kind::data) << path << " of " << size << " bytes";
    }
    write_text(path, whole);
  }
}

TEST_F(SavedColumnsTest, AreReadWithAWarningFromFilesWithoutChecksums) {
  const Json columns = *Json::read_file(description()).find("columns");
  const std::string numbering = numbering_of_data((options.folder / "train.txt").string());
  write_text(description(), Json(Json::Object{{"schema", 1}, {"numbering", numbering}, {"columns", columns}}).text(2));
  std::string bytes = read_text(vocabulary(), "file");
  bytes.resize(bytes.size() - 8);
  bytes.replace(0, 8, "HCTRVOC1");
  write_text(vocabulary(), bytes);
  EXPECT_EQ(error_of_reading(), std::nullopt);
  EXPECT_SAYS(warnings, "preprocess.json' comes from a version that wrote no checksum");
  EXPECT_SAYS(warnings, "vocabulary.bin' comes from a version that wrote no checksum");
  EXPECT_EQ(numbering_of_data((options.folder / "train.txt").string()), numbering);
}

TEST_F(SavedColumnsTest, TheNumberingOfDataIsNotReadFromADamagedFile) {
  std::string text = read_text(description(), "file");
  text[text.find("numbering") + 15] ^= 1;
  write_text(description(), text);
  EXPECT_SAYS(message_of([&] { numbering_of_data((options.folder / "train.txt").string()); }), "is damaged");
}

}  // namespace
}  // namespace hctr::data_test
