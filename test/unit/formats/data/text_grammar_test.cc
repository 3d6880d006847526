// Compares the parser of separated values with a simple state machine, on random texts that consist mostly of special
// characters.
#include "formats/data/text_grammar.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/base/random.h"

namespace hctr {
namespace {

struct Record {
  std::vector<std::string> cells;
  size_t end = 0;  // where the next record begins
  bool whole = false, good = true;
};

/// Parses a record one character at a time.
Record plain_record(const std::string& text, size_t at, const TextGrammar& grammar) {
  Record record;
  const std::string delimiter = grammar.delimiter + grammar.more;
  const auto ends_cell = [&](size_t i) { return text.compare(i, delimiter.size(), delimiter) == 0 || text[i] == '\n'; };
  const auto is_blank = [&](char c) { return grammar.trim && (c == ' ' || c == '\t') && c != grammar.delimiter; };
  for (;;) {
    std::string cell;
    size_t first = at;
    while (first < text.size() && is_blank(text[first])) ++first;
    if (grammar.quote && first < text.size() && text[first] == grammar.quote) {
      at = first + 1;
      for (;; ++at) {
        if (at == text.size()) {
          record.good = false;
          record.end = at;
          return record;
        }
        if (text[at] != grammar.quote)
          cell += text[at];
        else if (at + 1 < text.size() && text[at + 1] == grammar.quote)
          cell += text[at++];
        else
          break;
      }
      ++at;
      std::string behind;
      while (at < text.size() && !ends_cell(at)) behind += text[at++];
      while ((at == text.size() || text[at] == '\n') && behind.ends_with('\r')) behind.pop_back();
      if (!std::all_of(behind.begin(), behind.end(), is_blank)) record.good = false;
    } else {
      while (at < text.size() && !ends_cell(at)) cell += text[at++];
      while ((at == text.size() || text[at] == '\n') && cell.ends_with('\r')) cell.pop_back();
      while (!cell.empty() && is_blank(cell.back())) cell.pop_back();
      while (!cell.empty() && is_blank(cell.front())) cell.erase(0, 1);
    }
    record.cells.push_back(cell);
    if (at == text.size() || text[at] == '\n') {
      record.whole = at < text.size();
      record.end = at < text.size() ? at + 1 : at;
      return record;
    }
    at += delimiter.size();
  }
}

TEST(TextGrammar, SplitsAndCutsAsAPlainStateMachineDoes) {
  uint64_t draw = 7;
  int records = 0, bad = 0;
  for (int round = 0; round < 60000; ++round) {
    const bool long_delimiter = round % 5 == 0;
    const TextGrammar grammar{.delimiter = round % 7 == 0 ? ' ' : ';',
                              .quote = long_delimiter || round % 3 == 0 ? '\0' : '"',
                              .trim = round % 2 == 0,
                              .more = !long_delimiter  ? ""
                                      : round % 2 == 0 ? ";"
                                                       : ";a"};
    std::string text;
    const size_t length = (draw = mix64(draw)) % 40;
    for (size_t i = 0; i < length; ++i) text += "a\"\";;\n\r\"ab \t"[(draw = mix64(draw)) % 12];
    const size_t size = text.size();
    // a copy of exact size, so that AddressSanitizer detects reads past the end
    const std::vector<char> exact(text.begin(), text.end());
    RecordSplitter splitter(grammar);
    size_t last_end = 0;
    for (size_t at = 0; at < size;) {
      const Record want = plain_record(text, at, grammar);
      const char* next = splitter.split(exact.data() + at, exact.data() + size);
      ASSERT_EQ(next - exact.data(), static_cast<ptrdiff_t>(want.end)) << text;
      ASSERT_EQ(splitter.problem().empty(), want.good) << text << " | " << splitter.problem();
      if (want.good) {
        ASSERT_EQ(std::vector<std::string>(splitter.cells().begin(), splitter.cells().end()), want.cells) << text;
      }
      at = want.end;
      if (want.whole) last_end = at;
      ++records;
      bad += !want.good;
    }
    ASSERT_EQ(end_of_last_record(text, grammar), last_end) << text;
  }
  EXPECT_GT(records, 100000);
  EXPECT_GT(bad, 1000);
}

TEST(TextGrammar, CarriageReturnsInFrontOfALineFeedEndTheLine) {
  for (const TextGrammar& grammar : {TextGrammar{}, TextGrammar{.quote = '\0'}, TextGrammar{.trim = true}}) {
    const std::string text = "a,city\r\r\n1,\"x\"\r\r\r\n\r\r\n2,y\r\r";
    RecordSplitter splitter(grammar);
    std::vector<std::string> last;
    int blank = 0;
    for (const char *p = text.data(), *const end = p + text.size(); p < end;) {
      p = splitter.split(p, end);
      blank += is_blank(splitter.cells());
      last.emplace_back(splitter.cells().back());
    }
    EXPECT_EQ(last, (std::vector<std::string>{"city", grammar.quote ? "x" : "\"x\"", "", "y"}));
    EXPECT_EQ(blank, 1);
    EXPECT_EQ(splitter.problem(), "");
  }
}

TEST(TextGrammar, ACutAtAnyByteIsWhereARecordOfTheWholeTextStarts) {
  const std::string text = "a,\"b\"\"\n\",c\n\"x\ny\",\"\",z\"\n\n\"\"\"\n\"\"\"\r\n1,2\n";
  std::vector<size_t> starts;
  for (size_t at = 0; at < text.size(); at = plain_record(text, at, {}).end) starts.push_back(at);
  for (size_t length = 0; length <= text.size(); ++length) {
    const size_t cut = end_of_last_record(std::string_view(text).substr(0, length), {});
    EXPECT_TRUE(cut == text.size() || std::find(starts.begin(), starts.end(), cut) != starts.end())
        << length << " " << cut;
  }
}

TEST(TextGrammar, ManyCellsAndLongOnes) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::string(static_cast<size_t>(i % 37), 'x') + (i < 999 ? "\t" : "\n");
  RecordSplitter splitter({'\t', 0});
  splitter.split(text.data(), text.data() + text.size());
  ASSERT_EQ(splitter.cells().size(), 1000u);
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(splitter.cells()[i], std::string(i % 37, 'x'));
}

}  // namespace
}  // namespace hctr
