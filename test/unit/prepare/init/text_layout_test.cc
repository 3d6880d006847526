// Guesses the delimiter and header of a text with separated values.
#include "prepare/init/text_layout.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/message_of.h"

namespace hctr {
namespace {

using Names = std::vector<std::string>;

TEST(TextLayout, FindsTheSeparator) {
  for (const std::string separator : {",", "\t", ";", "|", "::", " "}) {
    std::string text = cat("a", separator, "b", separator, "y\n");
    for (int i = 0; i < 30; ++i) text += cat(i, separator, "x", i % 3, separator, i % 2, "\n");
    const TextLayout layout = guess_layout(text, "y");
    EXPECT_EQ(layout.delimiter, separator);
    EXPECT_TRUE(layout.header);
    EXPECT_EQ(layout.columns, (Names{"a", "b", "y"}));
    EXPECT_FALSE(layout.grammar.trim);
  }
}

TEST(TextLayout, SeparatorsInsideCellsDoNotMislead) {
  std::string text = "genres,place,y\n";
  for (int i = 0; i < 30; ++i) text += cat("drama|comedy|war,\"Washington, D.C.\",", i % 2, "\n");
  const TextLayout layout = guess_layout(text, "y");
  EXPECT_EQ(layout.delimiter, ",");
  EXPECT_EQ(layout.grammar.quote, '"');
  EXPECT_EQ(layout.columns.size(), 3U);
}

TEST(TextLayout, QuotesThatAreNoneAreCharacters) {
  std::string text = "size\tname\ty\n";
  for (int i = 0; i < 30; ++i) text += cat("\"", i, "\tnails, \"long\" ones\t", i % 2, "\n");
  const TextLayout layout = guess_layout(text, "y");
  EXPECT_EQ(layout.delimiter, "\t");
  EXPECT_EQ(layout.grammar.quote, '\0');
}

TEST(TextLayout, BlanksAroundCellsAreTrimmed) {
  EXPECT_TRUE(guess_layout("a, b, y\n1, x, 0\n2, y, 1\n", "y").grammar.trim);
  EXPECT_TRUE(guess_layout("a, b, y\n1, \"x, y\", 0\n2, y, 1\n", "y").grammar.trim) << "also around quotes";
  EXPECT_FALSE(guess_layout("a,b,y\n1,x y,0\n2,y,1\n", "y").grammar.trim);
}

TEST(TextLayout, WithoutAHeaderColumnsGoByTheirNumbers) {
  const TextLayout layout = guess_layout("0,5,x\n1,6,y\n", "1");
  EXPECT_FALSE(layout.header);
  EXPECT_EQ(layout.columns, (Names{"1", "2", "3"}));
  EXPECT_FALSE(guess_layout("x,y\nx,z\n", "2").header) << "the number of a column says that there are no names";
  EXPECT_TRUE(guess_layout("a,a,y\n1,2,3\n", "y").header) << "two names may be the same";
  EXPECT_TRUE(guess_layout("x,2020,2021\n1,2,3\n", "x").header) << "a name of the header says that there are names";
}

TEST(TextLayout, NamesAboveNumbersAreNoRow) {
  const auto refused = [](const std::string& text, const std::string& label) {
    return test::message_of(Kind::usage, [&] { guess_layout(text, label); });
  };
  EXPECT_EQ(refused("a,b,the label\n1,x,0\n2,y,1\n", "3"),
            "--label 3: the first line contains column names; name the column: --label 'the label'");
  EXPECT_NE(refused("a,b,y\n?,x,0\n2,y,\n", "3").find("name the column: --label y"), std::string::npos);
  // Text above text, or a missing value above numbers, may be data, so no header is guessed.
  EXPECT_FALSE(guess_layout("x,y\nx,z\n", "2").header);
  EXPECT_FALSE(guess_layout("?,y\n3,z\n", "2").header);
}

TEST(TextLayout, AByteOrderMarkIsNotPartOfAName) {
  EXPECT_EQ(guess_layout("\xEF\xBB\xBFy,b\n1,2\n", "y").columns, (Names{"y", "b"}));
}

TEST(TextLayout, SaysWhatIsNoTable) {
  const auto message = [](const std::string& text) {
    return test::message_of(Kind::data, [&] { guess_layout(text, "y"); });
  };
  const auto label_message = [](const std::string& text, const std::string& label) {
    return test::message_of(Kind::usage, [&] { guess_layout(text, label); });
  };
  EXPECT_EQ(message(""), "it is empty");
  EXPECT_EQ(message("\n\n"), "it is empty");
  EXPECT_NE(message("one\ntwo\n").find("no separator splits all rows into the same number of cells ("),
            std::string::npos);
  EXPECT_NE(message("PK\x03\x04 and so on").find("spreadsheet"), std::string::npos);
  EXPECT_NE(message(std::string("\xFF\xFE"
                                "a\0,\0",
                                6))
                .find("UTF-16"),
            std::string::npos);
  EXPECT_EQ(message(std::string("ab\0cd", 5)), "the file is not a text of separated values: byte 2 is zero");
  EXPECT_NE(label_message("income,age\n1,2\n", "incom").find("did you mean \"income\"?; there are 'income', 'age'"),
            std::string::npos);
  EXPECT_EQ(label_message("y,y\n1,2\n", "y"), "--label y: 2 columns have this name");
  EXPECT_NE(label_message("1,2\n3,4\n", "y").find("are numbered 1 to 2"), std::string::npos);
}

TEST(TextLayout, LinesThatEndWithCarriageReturnsAreNamed) {
  try {
    guess_layout("a,b\r1,2\r3,4\r", "a");
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a single carriage return"), std::string::npos) << error.what();
  }
}

TEST(TextLayout, LinesBeforeTheHeaderAndRowNamesAreNamed) {
  const auto message = [](const std::string& text) {
    return test::message_of(Kind::data, [&] { guess_layout(text, "y"); });
  };
  const std::string rows = "y;b;c\n1;2;3\n0;4;5\n1;6;7\n";
  EXPECT_EQ(message("# made in May\n" + rows),
            "its first line '# made in May' looks like a comment, which is not supported: remove the line");
  EXPECT_NE(message("Report of May\n\n" + rows).find("has 1 cell, but most rows have 3: remove the lines before the "),
            std::string::npos);
  EXPECT_NE(message("\"y\" \"b\"\n\"1\" 2 3\n\"2\" 4 5\n").find("R's row names (row.names = FALSE)"),
            std::string::npos);
  EXPECT_NE(message("y,b\n1,a,\n0,c,\n").find("rows end with a delimiter, but the header does not"), std::string::npos);
  EXPECT_NE(message("y,b\n1,'a, x'\n0,'c, z'\n").find("cells in single quotes"), std::string::npos);
  EXPECT_NE(message("y,b,c\r1,2,3\n0,2,3\n1,2,3\n").find("so the file has two kinds of line ends"), std::string::npos);
  EXPECT_NE(message("sep=;\n" + rows).find("sets Excel's delimiter"), std::string::npos);
  EXPECT_EQ(guess_layout("#y,b\n1,2\n", "#y").columns, (Names{"#y", "b"})) << "a header may begin like a comment";
}

TEST(TextLayout, BackslashesThatEscapeQuotesAreNamed) {
  const auto message = [](const std::string& text) {
    return test::message_of(Kind::data, [&] { guess_layout(text, "y"); });
  };
  for (const char* cell : {R"("say \"hi, there\"")", R"("it is 5\"")", R"("\"")"}) {
    std::string text = "y,t,x\n";
    for (int r = 0; r < 50; ++r) text += cat(r % 2, ",", cell, ",0.5\n");
    EXPECT_NE(
        message(text).find("a backslash escapes a quote, delimiter or line end, as in files of Spark, Hive and MySQL"),
        std::string::npos)
        << cell;
  }
  EXPECT_NE(message("y,t\n1,a\\,b\n0,c\\,d\n").find("a backslash"), std::string::npos) << "delimiters";
  EXPECT_NE(message("y\tt\n1\ta\\\tb\n0\tc\\\td\n").find("a backslash"), std::string::npos);
  EXPECT_EQ(guess_layout("y,t\n1,\"C:\\dir\"\n0,\"D:\\\"\n", "y").grammar.quote, '"') << "paths are no escapes";
  EXPECT_EQ(guess_layout("y\tt\n1\t{\"a\": \"x\\\"y\"}\n0\t{}\n", "y").delimiter, "\t") << "JSON between tabs";
}

}  // namespace
}  // namespace hctr
