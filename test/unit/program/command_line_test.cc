#include "program/command_line.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

enum class FlagColour { red, green };

struct Given {
  int64_t count = 3;
  std::string device = "auto";
  std::vector<std::string> names;
  std::optional<int> threads;
  FlagColour colour = FlagColour::red;
  bool force = false;
};

bool parse_words(Given& given, std::vector<std::string> words) {
  CommandLine line("paint", "Paints.", "That is all.");
  line.add_option("--count", given.count, "how many").range(1, 9).show_default();
  line.add_option("--device", given.device, "where").one_of({"auto", "cpu"});
  line.add_option("names", given.names, "of whom").comma_separated();
  line.add_option("--threads", given.threads, "threads").positive();
  line.add_word<FlagColour>("--colour", given.colour, {{"red", FlagColour::red}, {"green", FlagColour::green}},
                            "which");
  line.add_flag("--force", given.force, "at any price");
  words.insert(words.begin(), "bin/paint");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return line.parse(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CommandLine, FillsVariables) {
  Given given;
  EXPECT_TRUE(parse_words(given, {"--count", "4", "a,b", "c", "--threads", "2", "--colour", "green", "--force"}));
  EXPECT_EQ(given.count, 4);
  EXPECT_EQ(given.names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(given.threads, 2);
  EXPECT_EQ(given.colour, FlagColour::green);
  EXPECT_TRUE(given.force);
}

bool has(const std::string& text, const std::string& piece) { return text.find(piece) != text.npos; }

struct Numbers {
  int small = 1;
  int64_t large = 1;
  uint64_t seed = 1;
  double share = 1;
  std::optional<int64_t> perhaps;
  std::vector<int> several;
};

/// Parses a command line with options of every value type. Returns the error message.
std::string parse_numbers(Numbers& into, std::vector<std::string> words) {
  CommandLine line("count", "Counts.", "");
  line.add_option("--small", into.small, "an int");
  line.add_option("--large", into.large, "an int64_t").positive();
  line.add_option("--seed", into.seed, "a uint64_t");
  line.add_option("--share", into.share, "a double").positive_number();
  line.add_option("--perhaps", into.perhaps, "an optional int64_t").positive();
  line.add_option("--several", into.several, "ints").comma_separated();
  words.insert(words.begin(), "count");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  try {
    line.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::usage);
    return error.what();
  }
  return "";
}

TEST(CommandLine, TakesNoNumberForAnother) {
  for (const char* option : {"--small", "--large", "--seed", "--perhaps", "--several"})
    for (const char* word : {"99999999999999999999", "-99999999999999999999", "0x10", "12x", " 12", "12 ", " ", "1e3",
                             "1.5", "nan", "--5", "+-5", "+"}) {
      Numbers numbers;
      const std::string message = parse_numbers(numbers, {cat(option, "=", word)});
      EXPECT_NE(parse_numbers(numbers, {option, ""}), "");
      EXPECT_TRUE(message.starts_with(cat(option, ": expected a whole number from "))) << word << ": " << message;
      EXPECT_TRUE(has(message, cat("found \"", word, "\""))) << message;
    }
  for (const char* word : {"nan", "-nan", "inf", "1e999", "0x1p3", "1.5x", " 1", " ", "+-1"}) {
    Numbers numbers;
    EXPECT_TRUE(
        has(parse_numbers(numbers, {cat("--share=", word)}), cat("--share: expected a number, found \"", word, "\"")))
        << word;
  }
  Numbers numbers;
  EXPECT_TRUE(
      has(parse_numbers(numbers, {"--small=2147483648"}), "from -2147483648 to 2147483647, found \"2147483648"));
  EXPECT_TRUE(has(parse_numbers(numbers, {"--seed=-1"}), "from 0 to 18446744073709551615, found \"-1\""));
  EXPECT_TRUE(has(parse_numbers(numbers, {"--large=-5"}), "--large: expected a number above 0, found -5"));
  EXPECT_TRUE(has(parse_numbers(numbers, {"--share=-0.0"}), "--share: expected a number above 0, found -0.0"));
  EXPECT_TRUE(has(parse_numbers(numbers, {"--several=1,0x2"}), "found \"0x2\""));
}

TEST(CommandLine, TakesEveryNumberOfItsType) {
  Numbers numbers;
  EXPECT_EQ(parse_numbers(numbers, {"--small=-2147483648", "--large=9223372036854775807", "--seed=18446744073709551615",
                                    "--share=+1.5e3", "--perhaps=+7", "--several=010,-0,3"}),
            "");
  EXPECT_EQ(numbers.small, -2147483647 - 1);
  EXPECT_EQ(numbers.large, INT64_MAX);
  EXPECT_EQ(numbers.seed, UINT64_MAX);
  EXPECT_EQ(numbers.share, 1500);
  EXPECT_EQ(numbers.perhaps, 7);
  EXPECT_EQ(numbers.several, (std::vector<int>{10, 0, 3})) << "zeros before a number make it no octal one";
}

TEST(CommandLine, AFlagMayHaveAWord) {
  Given given;
  EXPECT_TRUE(parse_words(given, {"--force=true"}));
  EXPECT_TRUE(given.force);
  EXPECT_TRUE(parse_words(given, {"--force=false"}));
  EXPECT_FALSE(given.force);
}

TEST(CommandLine, LeavesVariablesThatAreNotGiven) {
  Given given;
  EXPECT_TRUE(parse_words(given, {}));
  EXPECT_EQ(given.count, 3);
  EXPECT_FALSE(given.threads.has_value());
  EXPECT_EQ(given.colour, FlagColour::red);
  EXPECT_FALSE(given.force);
}

TEST(CommandLine, HelpAndVersionArePrintedInsteadOfWork) {
  Given given;
  testing::internal::CaptureStdout();
  EXPECT_FALSE(parse_words(given, {"--help"}));
  const std::string help = testing::internal::GetCapturedStdout();
  for (const char* piece : {"Paints.", "Usage: paint", "--colour", "green or red", "That is all."})
    EXPECT_NE(help.find(piece), std::string::npos) << piece << " in " << help;
  testing::internal::CaptureStdout();
  EXPECT_FALSE(parse_words(given, {"--version"}));
  EXPECT_EQ(testing::internal::GetCapturedStdout().rfind("paint ", 0), 0u);
}

TEST(CommandLine, WrongWordsAreUsageErrors) {
  Given given;
  const auto message = [&](const std::vector<std::string>& words) {
    return message_of(Kind::usage, [&] { parse_words(given, words); });
  };
  for (const auto& [words, piece] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--cuont", "4"}, "--cuont"},
           {{"--count", "10"}, "--count: Value 10 not in range"},
           {{"--count", "many"}, "--count"},
           {{"--device", "gpu"}, "--device: expected auto or cpu, found \"gpu\""},
           {{"--threads", "0"}, "--threads"},
           {{"--force=99999999999999999999"}, "--force: expected no value, or true or false, found \"9999"},
           {{"--force=-3"}, "--force: expected no value"},
           {{"--colour", "blue"}, "--colour: expected green or red, found \"blue\""},
           {{"--colour", "Red"}, "found \"Red\"; did you mean \"red\"?"}})
    EXPECT_NE(message(words).find(piece), std::string::npos) << message(words) << " without " << piece;
  EXPECT_NE(message({"--cuont"}).find("; did you mean \"--count\"?; paint --help lists the options"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
