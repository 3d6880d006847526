// Completion scripts, man pages, exported symbols and the installed library match the program.
#include <gtest/gtest.h>

#include <sstream>

#include "core/base/expect.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

/// The long options in the output of --help.
std::vector<std::string> options_of(const std::string& program, const TemporaryFolder& folder) {
  const std::string pages = program == "huge_ctr" ? "--help-all" : "--help";
  std::istringstream help(run_program(program, {pages}, folder.path()).out);
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

/// The library exports only symbols declared in its headers: functions of the C interface, and names in namespace hctr.
/// Exported symbols of OpenBLAS, Arrow, protobuf or the C++ library would override those of a host program.
void expect_own_names_only(const std::filesystem::path& library, const TemporaryFolder& folder) {
  const Outcome names = run_program("/usr/bin/env", {"nm", "-DC", "--defined-only", library.string()}, folder.path());
  ASSERT_EQ(names.exit_code, 0) << names.err;
  std::istringstream lines(names.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    // a line has an address, a type and a name
    const std::string name = line.substr(line.find(' ', line.find(' ') + 1) + 1);
    const bool of_c = name.starts_with("hctr_"), of_error = name.find("for hctr::Error") != name.npos;
    EXPECT_TRUE(of_c || of_error || name.starts_with("hctr::")) << line;
    EXPECT_FALSE(name.starts_with("hctr::ops::") || name.find("::State::") != name.npos) << line;
  }
  EXPECT_GT(count, 50);
}

/// Compiles programs of samples/library against an installation with pkg-config and with CMake, as users do.
void expect_programs_work(const std::filesystem::path& tree, const TemporaryFolder& folder) {
  const std::string samples = (tree / "share/huge_ctr/samples/library").string();
  write_file(folder / "build.sh", R"sh(set -e
    pc=$(dirname "$(find "$2" -name huge_ctr.pc)")
    flags="$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs huge_ctr) -Wl,-rpath,$(dirname "$pc")"
    for program in embedding model trainer; do
      c++ -std=c++20 -Wall -Wextra -Werror -fsanitize=address "$1/$program.cc" -o $program $flags
    done
    cc -std=c99 -Wall -Wextra -Werror -fsanitize=address "$1/embedding.c" -o embedding_c $flags
    mkdir cmake
    cd cmake
    cat > CMakeLists.txt << END
    cmake_minimum_required(VERSION 3.22)
    project(uses_huge_ctr LANGUAGES C CXX)
    find_package(huge_ctr 0.1 REQUIRED)
    foreach(program embedding.cc embedding.c)
      add_executable(with_\${program} $1/\${program})
      target_link_libraries(with_\${program} PRIVATE huge_ctr::huge_ctr)
    endforeach()
END
    cmake -B build -DCMAKE_PREFIX_PATH="$2" > log
    cmake --build build >> log)sh");
  const Outcome built = run_program("/usr/bin/env", {"bash", "build.sh", samples, tree.string()}, folder.path());
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const std::string trained = "2 rows; the first element is 1.000\n";
  for (const char* program :
       {"embedding", "embedding_c", "cmake/build/with_embedding.cc", "cmake/build/with_embedding.c"}) {
    const Outcome outcome = run_program((folder / program).string(), {}, folder.path());
    EXPECT_EQ(outcome.exit_code, 0) << program << outcome.err;
    EXPECT_EQ(outcome.out, trained) << program;
  }
  write_file(folder / "c.json", small_config());
  make_data(folder.path(), "c.json", 600, 100, {"--vocabulary", "50"});
  const Outcome train = run_program((folder / "trainer").string(), {"c.json", "run"}, folder.path());
  EXPECT_EQ(train.exit_code, 0) << train.out << train.err;
  EXPECT_NE(train.out.find("AUC "), std::string::npos) << train.out;
  const Outcome score = run_program((folder / "model").string(), {"run"}, folder.path());
  EXPECT_EQ(score.exit_code, 0) << score.out << score.err;
  EXPECT_NE(score.out.find("scores 0."), std::string::npos) << score.out;
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
  if (!std::filesystem::exists(bin_dir() / "libhuge_ctr.so")) return;  // sanitizer builds have no library
  expect_own_names_only(bin_dir() / "libhuge_ctr.so", folder);
  expect_programs_work(folder / "tree", folder);
}

}  // namespace
}  // namespace hctr::test
