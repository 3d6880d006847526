// Runs every file of the fuzz corpora, whole and truncated, through its fuzz entry.
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "fuzz/entries.h"
#include "support/paths.h"

namespace hctr {
namespace {

class FuzzCorpus : public testing::TestWithParam<fuzz::Entry> {};

TEST_P(FuzzCorpus, NoFileBreaksAPromise) {
  const fs::path folder = hctr::test::source_dir() / "test/fuzz/corpus" / GetParam().name;
  int files = 0;
  for (const auto& file : fs::directory_iterator(folder)) {
    SCOPED_TRACE(file.path());
    const std::string text = read_text(file.path(), "corpus");
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    GetParam().run(bytes);
    for (const size_t share : {1, 3, 7}) GetParam().run(fuzz::Bytes(bytes).first(bytes.size() * share / 8));
    ++files;
  }
  EXPECT_GE(files, 3) << folder;
}

/// A fuzzer tests little if the parser rejects all corpus files early. When the checkpoint state gets new fields, add
/// the fields to these files.
TEST(FuzzCorpusOfCheckpoints, IsLoaded) {
  for (const char* name : {"whole0", "whole1", "increment"}) {
    const std::string text = read_text(hctr::test::source_dir() / "test/fuzz/corpus/checkpoint_state" / name, "corpus");
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    EXPECT_TRUE(fuzz::loads_checkpoint(bytes)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzCorpus, testing::ValuesIn(fuzz::entries()),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace hctr
