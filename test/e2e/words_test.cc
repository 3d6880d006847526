// tools/lint_words.py reports the phrases that it lists, and tools/draw_sentences.py finds comments, messages and
// paragraphs.
#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

constexpr const char* kWordsCheck = R"(
import sys
sys.path.insert(0, sys.argv[1])
import draw_sentences as draw, lint_words as lint

source = ['/// Sums rows.', '/// In a fixed order.', 'int sum;  // of all ranks', 'fail("expected some row // here");', '']
assert list(draw.comments("src/a.cc", source)) == [(1, "Sums rows. In a fixed order."), (3, "of all ranks")]
assert list(draw.messages("src/a.cc", source + ['f("one two "', '  "three four");'])) == [
    (4, "expected some row // here"), (6, "one two three four")]
page = ["# Title", "", "One", "paragraph.", "- An item", "  of two lines.", "```sh", "command", "```", "| a | cell |"]
assert [text for _, text in draw.paragraphs("a.md", page)] == ["One paragraph.", "- An item of two lines.", "| a | cell |"]

bad = ["rows beside the table", "those that have left", "What becomes of a row.", "the gradient of the weights",
       "one in so many checkpoints", "it goes on from step 3", "nobody waits"]
for sentence in bad:
    assert list(lint.warnings_of(sentence)), sentence
for sentence in ["evicted rows", "Which rank owns a row?", "one `beside` in code", "resumes from step 3"]:
    assert not list(lint.warnings_of(sentence)), sentence
)";

TEST(Words, LintFindsHabitsInDrawnText) {
  const TemporaryFolder folder;
  const Outcome done = run_program(
      "/usr/bin/env", {"python3", "-B", "-c", kWordsCheck, (source_dir() / "tools").string()}, folder.path());
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
}

}  // namespace
}  // namespace hctr::test
