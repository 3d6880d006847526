// Detects that a slot and a list slot with equal texts have separate rows in one table.
#include "formats/catalog/equal_texts.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "formats/text/csv_set.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

/// Rows with an item, a list of items, and an unrelated column. `kinds`: the number of distinct items.
std::string rows_of_items(int kinds, const char* of_items) {
  std::string text = "y,item,town,before\n";
  for (int r = 0; r < 200; ++r)
    text += cat(r % 2, ",", of_items, r * 7 % kinds, ",t", r % 30, ",i", r * 3 % kinds, "|i", r * 5 % kinds, "\n");
  return text;
}

struct EqualTexts : testing::Test {
  std::vector<std::string> notes(const std::string& rows, const std::vector<std::string>& spaces = {"", "", ""}) {
    DataSection section = section_of(1, 0, {input_of("s", 3, 4, 6)});
    section.format = kCsvFormat;
    auto& csv = section.options.edit<CsvOptions>();
    csv.labels = {"y"};
    csv.slots = {{.columns = {"item"}, .buckets = 500, .key_space = spaces[0]},
                 {.columns = {"town"}, .key_space = spaces[1]},
                 {.columns = {"before"}, .separator = "|", .key_space = spaces[2]}};
    write_text(folder / "a.csv", rows);
    return notes_on_equal_texts(section, {(folder / "a.csv").string()}, KeyWidth::detect);
  }
  const Folder folder;
};

TEST_F(EqualTexts, AnItemAndAListOfItemsWithRowsOfTheirOwnAreNoted) {
  const std::vector<std::string> found = notes(rows_of_items(50, "i"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0],
            "100 % of the values of slot 'item' also occur in the lists of slot 'before', but the two slots use "
            "different rows, because each slot hashes or numbers its values separately; set the same \"key_space\" in "
            "both slots to share vectors");
}

TEST_F(EqualTexts, NothingIsSaidOfSharedKeysOtherTextsOrFewOfThem) {
  EXPECT_TRUE(notes(rows_of_items(50, "i"), {"x", "", "x"}).empty());
  EXPECT_TRUE(notes(rows_of_items(50, "j")).empty());
  EXPECT_TRUE(notes(rows_of_items(9, "i")).empty());
}

TEST_F(EqualTexts, BadRecordsHaveNoPartInIt) {
  EXPECT_EQ(notes(rows_of_items(50, "i") + "x,i1\nbad,i2,t,i3\n").size(), 1u);
}

}  // namespace
}  // namespace hctr::data_test
