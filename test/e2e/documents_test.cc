// The documents are up to date: their commands run, and all files, programs, options and pages in them exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "core/base/expect.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// A fenced block of a page. The fence "```json wdl.json" has the language "json" and the name "wdl.json".
struct Block {
  std::string language, name;
  std::vector<std::string> lines;
};

struct Page {
  std::string path;  // relative to the root of the source tree
  std::vector<Block> blocks;
  std::vector<std::string> prose;  // lines outside of blocks

  /// Whether the page describes the current version. The changelog may mention files and options that no longer exist.
  bool of_today() const { return path != "CHANGELOG.md"; }
  /// Whether the program generates this page from its declarations.
  bool generated() const { return path == "docs/config.md" || path == "docs/layers.md"; }
};

Page read_page(const std::string& path) {
  Page page{path, {}, {}};
  std::istringstream lines(read_file(source_dir() / path));
  bool inside = false;
  size_t indent = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t start = std::min(line.find_first_not_of(' '), line.size());
    if (line.compare(start, 3, "```") == 0) {
      inside = !inside;
      if (!inside) continue;
      indent = start;
      const std::string words = line.substr(start + 3);
      const size_t blank = std::min(words.find(' '), words.size());
      page.blocks.push_back({words.substr(0, blank), blank < words.size() ? words.substr(blank + 1) : "", {}});
    } else if (inside) {
      page.blocks.back().lines.push_back(line.substr(std::min(start, indent)));
    } else {
      page.prose.push_back(line);
    }
  }
  EXPECT_FALSE(inside) << path << ": a block has no end";
  return page;
}

/// Every Markdown file of the repository.
std::vector<Page> all_pages() {
  std::vector<std::string> paths;
  const auto add = [&](const fs::path& file) {
    if (file.extension() == ".md") paths.push_back(fs::relative(file, source_dir()).string());
  };
  for (const auto& entry : fs::directory_iterator(source_dir())) add(entry.path());
  for (const char* folder : {"docs", "samples", "third_party", "test", "tools", "src", "include"})
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder)) add(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Page> pages;
  for (const std::string& path : paths) pages.push_back(read_page(path));
  return pages;
}

/// Returns the commands of a ```sh block. Each line is a command, except lines continued with \ and here-documents. A
/// block that begins with #! is one command, a script.
std::vector<std::string> commands_of(const Block& block) {
  std::vector<std::string> commands;
  std::string end_of_document;
  bool goes_on = !block.lines.empty() && block.lines[0].starts_with("#!");
  const bool script = goes_on;
  if (script) commands.emplace_back();
  for (const std::string& line : block.lines) {
    if (goes_on || !end_of_document.empty())
      commands.back() += (commands.back().empty() ? "" : "\n") + line;
    else if (!line.empty() && !line.starts_with("#"))
      commands.push_back(line);
    else
      continue;
    if (!end_of_document.empty()) {
      if (line == end_of_document) end_of_document.clear();
    } else if (const size_t here = line.find("<<"); !script && here != line.npos) {
      end_of_document = line.substr(here + 2);
    }
    goes_on = script || line.ends_with("\\");
  }
  return commands;
}

/// Prefixes of commands that this test does not run, with the reason. Their files and options must still exist.
struct NotRun {
  const char *pattern, *why;
};
constexpr NotRun kNotRun[] = {
    {R"(([A-Z]+=\S+ )*samples/\w+/run\.sh)", "samples_test.cc runs the scripts of the samples"},
    {R"(test/run\.sh|\.ci/|test/fuzz/run\.sh|ctest )", "runs these tests, or what CI runs beside them"},
    {R"(cmake |third_party/install\.sh)", "sets up and builds"},
    {R"(git )", "changes the repository"},
    {R"(samples/criteo/yardstick\.py)", "needs scikit-learn"},
    {R"(test/peers/|([A-Z_]+=\S+ )?(python3 -m venv|venv/bin/))", "needs libraries of other people"},
    {R"(python3 tools/python/hctr_model\.py)", "needs NumPy; PythonReader runs it"},
    {R"(python3 tools/python/check_onnx\.py)", "needs onnxruntime; Export.LibrariesReadWhatIsWritten runs it"},
    {R"(python/build_wheel\.py)", "test/python/run.py runs it"},
    {R"(spark-submit )", "SparkJob runs it, in local mode"},
    {R"((huge_ctr|bench) serve |curl )", "needs a service; ServedVersions and the sample of serving run one"},
    {R"(mpirun |cat > hosts|#!/bin/bash\n#SBATCH)", "needs several hosts; RanksTest starts processes"},
    {R"(build/cuda/|compute-sanitizer )", "needs a GPU"},
    {R"((mkdir -p found && )?build/cpu-(fuzz|asan|tsan)/)", "belongs to another build"},
    {R"(([A-Z_]+=\S+ )?build/\w+/bin/(unit|integration|e2e)_tests)", "runs tests"},
};

std::string why_not_run(const std::string& command) {
  for (const NotRun& row : kNotRun)
    if (std::regex_search(command, std::regex(row.pattern), std::regex_constants::match_continuous)) return row.why;
  return "";
}

/// Creates the input files of a page's commands, except files that the commands themselves create.
void make_folder_of_a_user(const TemporaryFolder& folder, const Page& page) {
  const fs::path source = source_dir();
  for (const char* part : {"docs", "samples"}) fs::copy(source / part, folder / part, fs::copy_options::recursive);
  for (const char* part : {"include", "src", "test", "third_party", "tools"})
    fs::create_directory_symlink(source / part, folder / part);
  fs::create_directories(folder / "build/cpu");
  fs::create_directory_symlink(bin_dir(), folder / "build/cpu/bin");
  for (const Block& block : page.blocks) {
    if (block.name.empty()) continue;
    std::string text;
    for (const std::string& line : block.lines) text += line + "\n";
    write_file(folder / block.name, text);
  }
}

TEST(Documents, CommandsRun) {
  int run = 0, named = 0;
  for (const Page& page : all_pages()) {
    SCOPED_TRACE(page.path);
    const TemporaryFolder folder;
    bool ready = false;
    for (const Block& block : page.blocks) {
      if (block.language != "sh") continue;
      for (const std::string& command : commands_of(block)) {
        if (!why_not_run(command).empty()) {
          ++named;
          continue;
        }
        if (!ready) make_folder_of_a_user(folder, page);
        ready = true;
        ++run;
        const Outcome done =
            run_program("/bin/bash", {"-c", "set -o pipefail; " + command}, folder.path(),
                        {{"PATH", (folder.path() / "build/cpu/bin").string() + ":" + std::getenv("PATH")}});
        EXPECT_EQ(done.exit_code, 0) << command << "\n" << done.out << done.err;
      }
    }
  }
  EXPECT_GE(run, 20);
  EXPECT_GE(named, 20);
}

TEST(Documents, BlocksHaveALanguageThatIsKnown) {
  // A block in an unknown language could contain commands that no test runs. test/python/test_documents.py runs the
  // Python blocks.
  const std::set<std::string> known = {"", "sh", "json", "csv", "yaml", "cpp", "cmake", "mermaid", "python"};
  for (const Page& page : all_pages())
    for (const Block& block : page.blocks)
      EXPECT_TRUE(known.contains(block.language)) << page.path << ": ```" << block.language;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Whether `word` is a program of the build.
bool is_program(const std::string& word) {
  static const std::set<std::string> programs = {"huge_ctr",     "preprocess",    "criteo2hugectr",
                                                 "data_inspect", "bench",         "data_generator",
                                                 "feature_spec", "table_inspect", "model_convert"};
  return programs.contains(word);
}

/// Returns the help of a program, or of one of its commands.
const std::string& help_of(const std::string& program, const std::string& command) {
  static std::map<std::string, std::string> known;
  std::string& text = known[program + " " + command];
  if (text.empty()) {
    text = run_program(program, {program == "huge_ctr" ? "--help-all" : "--help"}, fs::temp_directory_path()).out;
    if (!command.empty()) text += run_program(program, {command, "--help"}, fs::temp_directory_path()).out;
  }
  return text;
}

/// Whether `path` is a file or folder of the tree, relative to the root or to src. The file extension is optional. Only
/// the part of a file name before the first {, * or < must match.
bool exists_in_tree(std::string path) {
  const size_t varies = path.find_first_of("{*<");
  path = path.substr(0, varies);
  for (const fs::path& root : {source_dir(), source_dir() / "src"}) {
    if (fs::exists(root / path)) return true;
    const fs::path folder = (root / path).parent_path();
    const std::string stem = (root / path).filename().string() + (varies == path.npos ? "." : "");
    if (stem == "." || !fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().filename().string().starts_with(stem)) return true;
  }
  return false;
}

/// Reports nonexistent programs, options, presets and paths in a command, or in inline code of a sentence.
void expect_names_exist(const std::string& where, std::string text, bool is_command) {
  text = std::regex_replace(text, std::regex(R"(\s#\s.*)"), "");  // removes a comment
  const std::string place = cat(where, ": `", text, "`");
  std::vector<std::string> words = words_of(std::regex_replace(text, std::regex(R"([|;&()]+)"), " ; "));
  std::string program, command, script;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (word == ";") program = command = script = "";
    static const std::regex build(R"(build/[\w-]+/bin/(\w+))");
    if (std::smatch found; std::regex_match(word, found, build)) {
      word = found[1];
      if (word.starts_with("fuzz_")) {
        EXPECT_TRUE(fs::exists(source_dir() / "test/fuzz/corpus" / word.substr(5))) << place << ": no fuzzer " << word;
      } else {
        EXPECT_TRUE(word.ends_with("_tests") || fs::exists(bin_dir() / word)) << place << ": no program " << word;
      }
    }
    static const std::regex tree(R"((\./)?(src|include|test|tools|samples|docs|third_party|\.ci)/\S+)");
    if (std::regex_match(word, tree)) {
      EXPECT_TRUE(exists_in_tree(word)) << place << ": no " << word;
      if (word.ends_with(".py") || word.ends_with(".sh")) script = word;
      const bool called = i == 0 || words[i - 1] == ";" || words[i - 1].find('=') != std::string::npos;
      if (is_command && called && !script.empty()) {
        EXPECT_NE(fs::status(source_dir() / word).permissions() & fs::perms::owner_exec, fs::perms::none)
            << place << ": " << word << " is not executable";
      }
    }
    if (is_program(word)) {
      program = word;
      const bool has_commands = word == "bench" || word == "feature_spec";
      command = has_commands && i + 1 < words.size() && std::isalpha(words[i + 1][0]) ? words[i + 1] : "";
      continue;
    }
    if (word == "--preset" && i + 1 < words.size()) {
      EXPECT_NE(read_file(source_dir() / "CMakePresets.json").find("\"" + words[i + 1] + "\""), std::string::npos)
          << place << ": no preset " << words[i + 1];
    }
    if (!word.starts_with("--")) continue;
    const std::string option = word.substr(0, word.find_first_of("=,.:"));
    if (option.size() == 2) continue;
    if (!program.empty()) {
      EXPECT_TRUE(std::regex_search(help_of(program, command), std::regex(option + "\\b")))
          << place << ": " << program << " has no " << option;
    } else if (script.ends_with(".py")) {
      EXPECT_NE(read_file(source_dir() / script).find(option), std::string::npos)
          << place << ": " << script << " has no " << option;
    }
  }
}

TEST(Documents, FilesProgramsAndOptionsThatTheyNameExist) {
  int commands = 0, sentences = 0;
  for (const Page& page : all_pages()) {
    for (const Block& block : page.blocks) {
      if (block.language != "sh") continue;
      for (const std::string& command : commands_of(block)) expect_names_exist(page.path, command, true), ++commands;
    }
    if (!page.of_today()) continue;
    static const std::regex code("`([^`]+)`");
    for (const std::string& line : page.prose)
      for (auto found = std::sregex_iterator(line.begin(), line.end(), code); found != std::sregex_iterator();
           ++found) {
        const std::string text = (*found)[1];
        static const std::regex source_file(R"([a-z_]+(/[a-z0-9_]+)+\.(h|cc|cu|cuh|py|sh|json))");
        if (std::regex_match(text, source_file) &&
            fs::is_directory(source_dir() / "src" / text.substr(0, text.find('/')))) {
          EXPECT_TRUE(exists_in_tree(text)) << page.path << ": no " << text;
        }
        expect_names_exist(page.path, text, false);
        ++sentences;
      }
  }
  EXPECT_GE(commands, 40);
  EXPECT_GE(sentences, 200);
}

/// Returns GitHub's link anchor for a heading.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto letter = static_cast<unsigned char>(c);
    if (c == ' ')
      anchor += '-';
    else if (letter >= 128 || std::isalnum(letter) || c == '-' || c == '_')
      anchor += static_cast<char>(letter < 128 ? std::tolower(letter) : letter);
  }
  return anchor;
}

TEST(Documents, LinksLeadSomewhere) {
  const std::vector<Page> pages = all_pages();
  std::map<std::string, std::set<std::string>> anchors;
  for (const Page& page : pages)
    for (const std::string& line : page.prose)
      if (line.starts_with("#")) {
        const std::string anchor = anchor_of(line.substr(line.find_first_not_of("# ")));
        std::string found = anchor;
        for (int more = 1; !anchors[page.path].insert(found).second; ++more) found = cat(anchor, "-", more);
      }
  int links = 0;
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  for (const Page& page : pages) {
    std::vector<std::string> targets;
    for (const std::string& line : page.prose)
      for (auto found = std::sregex_iterator(line.begin(), line.end(), link); found != std::sregex_iterator(); ++found)
        targets.push_back((*found)[1]);
    for (const std::string& target : targets) {
      if (target.starts_with("http")) continue;
      ++links;
      const size_t sharp = std::min(target.find('#'), target.size());
      const fs::path file = target.substr(0, sharp);
      const fs::path path =
          file.empty() ? fs::path(page.path) : (fs::path(page.path).parent_path() / file).lexically_normal();
      const bool there = fs::exists(source_dir() / path);
      EXPECT_TRUE(there) << page.path << ": nothing at " << target;
      if (there && sharp < target.size()) {
        EXPECT_TRUE(anchors[path.string()].contains(target.substr(sharp + 1)))
            << page.path << ": no heading for " << target;
      }
    }
  }
  EXPECT_GE(links, 100);
}

TEST(Documents, EveryPageIsReachedFromTheReadme) {
  std::set<std::string> reached = {"README.md"};
  static const std::regex link(R"(\]\(([^)#\s]+)[^)]*\))");
  for (std::vector<std::string> open = {"README.md"}; !open.empty();) {
    const Page page = read_page(open.back());
    open.pop_back();
    for (const std::string& line : page.prose)
      for (auto found = std::sregex_iterator(line.begin(), line.end(), link); found != std::sregex_iterator();
           ++found) {
        fs::path path = (fs::path(page.path).parent_path() / (*found)[1].str()).lexically_normal();
        if (fs::is_directory(source_dir() / path) && fs::exists(source_dir() / path / "README.md")) path /= "README.md";
        if (path.extension() == ".md" && fs::exists(source_dir() / path) && reached.insert(path.string()).second)
          open.push_back(path.string());
      }
  }
  for (const Page& page : all_pages())
    EXPECT_TRUE(reached.contains(page.path)) << "no page that README.md leads to links to " << page.path;
}

TEST(Documents, CellsOfTablesHoldPhrases) {
  for (const Page& page : all_pages()) {
    if (page.generated()) continue;
    for (const std::string& line : page.prose)
      if (line.starts_with("|")) {
        EXPECT_LE(line.size(), 400u) << page.path << ": " << line;
      }
  }
}

}  // namespace
}  // namespace hctr::test
