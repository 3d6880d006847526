#include "config/command_line.h"

#include <gtest/gtest.h>

#include "base/error.h"
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
           {{"--colour", "blue"}, "--colour: expected green or red, found \"blue\""},
           {{"--colour", "Red"}, "found \"Red\"; did you mean \"red\"?"}})
    EXPECT_NE(message(words).find(piece), std::string::npos) << message(words) << " without " << piece;
  EXPECT_NE(message({"--cuont"}).find("; did you mean \"--count\"?; paint --help lists what there is"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
