// Completion scripts and man pages are those of the options.
#include <gtest/gtest.h>

#include <sstream>

#include "core/base/expect.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

/// The long options that --help lists.
std::vector<std::string> options_of(const std::string& program, const TemporaryFolder& folder) {
  std::istringstream help(run_program(program, {"--help"}, folder.path()).out);
  std::vector<std::string> options;
  for (std::string word; help >> word;)
    if (word.starts_with("--") && word.size() > 2 && std::isalpha(static_cast<unsigned char>(word[2])) &&
        word.find_first_of(".,;:[]()'=") == word.npos)
      options.push_back(word);
  return options;
}

TEST(Package, CompletionAndManPageHaveEveryOption) {
  const TemporaryFolder folder;
  for (const char* program : {"huge_ctr", "preprocess", "data_inspect"}) {
    if (!std::filesystem::exists(bin_dir() / program)) continue;
    const std::string bash = run_program(program, {"--completion", "bash"}, folder.path()).out,
                      zsh = run_program(program, {"--completion", "zsh"}, folder.path()).out;
    std::string man = run_program(program, {"--man"}, folder.path()).out;
    EXPECT_EQ(man.rfind(".TH ", 0), 0u) << man.substr(0, 100);
    for (size_t at; (at = man.find("\\-")) != man.npos;) man.replace(at, 2, "-");
    int options = 0;
    for (const std::string& option : options_of(program, folder)) {
      ++options;
      EXPECT_NE(bash.find(option), std::string::npos) << program << " " << option;
      EXPECT_NE(zsh.find(option), std::string::npos) << program << " " << option;
      EXPECT_NE(man.find(option), std::string::npos) << program << " " << option;
    }
    EXPECT_GT(options, 5) << program;
  }
}

TEST(Package, BashCompletesOptionsAndTheirWords) {
  const TemporaryFolder folder;
  write_file(folder / "complete.sh", R"(
    source <("$1" --completion bash)
    COMP_WORDS=(huge_ctr "${@:2}"); COMP_CWORD=$(($# - 1)); _huge_ctr; echo "${COMPREPLY[@]}")");
  const auto complete = [&](const std::vector<std::string>& words) {
    std::vector<std::string> arguments = {"bash", "complete.sh", (bin_dir() / "huge_ctr").string()};
    arguments.insert(arguments.end(), words.begin(), words.end());
    return run_program("/usr/bin/env", arguments, folder.path()).out;
  };
  EXPECT_EQ(complete({"--dev"}), "--device\n");
  EXPECT_EQ(complete({"--device", "c"}), "cpu cuda\n");
  EXPECT_EQ(complete({"--train", "compl"}), "complete.sh\n");
  EXPECT_EQ(run_program("huge_ctr", {"--completion", "fish"}, folder.path()).exit_code, 2);
}

TEST(Package, ManPagesAreRight) {
  const TemporaryFolder folder;
  if (run_program("/usr/bin/env", {"bash", "-c", "command -v groff"}, folder.path()).exit_code != 0)
    GTEST_SKIP() << "no groff";
  write_file(folder / "page.1", run_program("huge_ctr", {"--man"}, folder.path()).out);
  const Outcome shown = run_program("/usr/bin/env", {"groff", "-man", "-Tutf8", "-ww", "page.1"}, folder.path());
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.err, "");
}

TEST(Package, AnInstalledTreeIsWhole) {
  const TemporaryFolder folder;
  for (const char* program : {"huge_ctr", "criteo2hugectr", "data_generator", "data_inspect", "feature_spec",
                              "preprocess", "table_inspect", "model_convert"})
    if (!std::filesystem::exists(bin_dir() / program)) GTEST_SKIP() << program << " is not built";
  const Outcome installed = run_program(
      "/usr/bin/env", {"cmake", "--install", bin_dir().parent_path().string(), "--prefix", (folder / "tree").string()},
      folder.path());
  ASSERT_EQ(installed.exit_code, 0) << installed.err;
  const Outcome version = run_program((folder / "tree/bin/huge_ctr").string(), {"--version"}, folder.path());
  EXPECT_EQ(version.out, run_program("huge_ctr", {"--version"}, folder.path()).out);
  for (const char* program : {"huge_ctr", "table_inspect"}) {
    EXPECT_EQ(read_file(folder / "tree/share/bash-completion/completions" / program),
              run_program(program, {"--completion", "bash"}, folder.path()).out);
    EXPECT_EQ(read_file(folder / "tree/share/man/man1" / cat(program, ".1")),
              run_program(program, {"--man"}, folder.path()).out);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "tree/share/doc/huge_ctr/config.md"));
  EXPECT_TRUE(std::filesystem::exists(folder / "tree/share/huge_ctr/samples/wdl/wdl.json"));
}

}  // namespace
}  // namespace hctr::test
