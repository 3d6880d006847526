// Includes between rooms follow the declared hierarchy, and CUDA is confined to its rooms. #if, process-wide state and
// access to private members of other classes are confined to listed places.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/paths.h"

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::vector<std::string>> kDirectUses = {
    {"core/base", {}},
    {"core/device", {"core/base"}},
    {"core/comm", {"core/device"}},
    {"config", {"core/base"}},
    {"ops/common", {"core/device"}},
    {"ops/gemm", {"ops/common"}},
    {"ops/dense", {"ops/gemm"}},
    {"ops/loss", {"ops/gemm"}},
    {"ops/optimizer", {"ops/common"}},
    {"ops/embedding", {"ops/optimizer"}},
    {"ops/cache", {"ops/embedding"}},
    {"metrics", {"config"}},
    {"formats/data", {"config"}},
    {"stream", {"config"}},
    {"formats/io", {"core/base", "stream"}},
    {"formats/catalog", {"formats/data", "formats/io"}},  // catalog may also include the room of each format
    {"formats/reader", {"formats/catalog"}},
    {"formats/checkpoint", {"core/device", "config"}},
    {"engine/placement", {"ops/embedding", "core/comm", "config"}},
    {"engine/spec", {"engine/placement"}},
    {"engine/policy", {"engine/spec"}},
    {"engine/rows", {"engine/spec"}},
    {"engine/disk", {"engine/rows", "formats/checkpoint"}},
    {"engine/tiers", {"engine/disk"}},
    {"engine/table", {"engine/tiers", "engine/policy"}},
    {"engine/exchange", {"engine/table"}},
    {"engine/set", {"engine/table"}},
    {"net/layers", {"ops/dense", "ops/loss", "config"}},
    {"config/sections", {"formats/catalog", "metrics", "net/layers", "engine/exchange"}},
    {"formats/model", {"config/sections"}},
    {"net/graph", {"config/sections", "formats/checkpoint"}},
    {"net/fusion", {"net/graph"}},
    {"net/plan", {"net/graph"}},
    {"net/model", {"net/fusion", "net/plan", "formats/model"}},
    {"launch", {"config/sections"}},
    {"score", {"net/model", "formats/reader"}},
    {"store", {"formats/model", "ops/cache"}},
    {"infer", {"score", "launch", "store"}},
    {"serve", {"infer"}},
    {"train", {"infer"}},
    {"export", {"net/model"}},
    {"use", {"infer", "export"}},
    {"report", {"use", "train"}},
    {"capi", {"report"}},
    {"program", {"config"}},  // only src/app and tools/ include it, but no room of the library
    {"app", {"report", "serve", "prepare/init", "program"}},
    {"plugins/parquet", {"formats/parquet"}},
    {"plugins/mpi", {"core/comm"}},
    {"plugins/rocksdb", {"store"}},
    {"plugins/redis", {"store"}},
    {"plugins/kafka", {"stream"}},
    {"plugins/grpc", {"serve"}},
    {"prepare", {"formats/catalog"}},
    {"prepare/write", {"formats/catalog"}},
    {"prepare/preprocess", {"prepare", "prepare/write"}},
    {"prepare/generate", {"prepare/write", "metrics"}},
    {"prepare/inspect", {"prepare"}},
    {"prepare/init", {"prepare/inspect"}},
};
const std::set<std::string> kCudaRooms = {"core/device", "core/comm",     "ops/common",    "ops/gemm", "ops/dense",
                                          "ops/loss",    "ops/optimizer", "ops/embedding", "ops/cache"};

/// Whether a room contains a single data format, such as formats/raw. Format rooms may include formats/data and
/// formats/io, and need not be listed above.
bool is_format(const std::string& room) { return room.starts_with("formats/") && !kDirectUses.contains(room); }

std::set<std::string> reachable(const std::string& room) {
  if (is_format(room)) return {room, "core/base", "config", "formats/data", "formats/io"};
  std::set<std::string> rooms = {room};
  for (const std::string& next : kDirectUses.at(room)) rooms.merge(reachable(next));
  return rooms;
}

bool may_use(const std::string& room, const std::string& other) {
  const std::set<std::string> rooms = reachable(room);
  return rooms.contains(other) || (is_format(other) && rooms.contains("formats/catalog"));
}

struct Line {
  std::string file, room, text;
};

std::vector<Line> lines_of(const std::string& folder) {
  std::vector<Line> lines;
  const fs::path src = hctr::test::source_dir() / folder;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    const std::string ending = entry.path().extension().string();
    if (ending != ".h" && ending != ".cc" && ending != ".cu" && ending != ".cuh") continue;
    const fs::path relative = fs::relative(entry.path(), src);
    std::ifstream file(entry.path());
    for (std::string text; std::getline(file, text);)
      lines.push_back({relative.string(), relative.parent_path().string(), text});
  }
  return lines;
}

std::vector<Line> lines_of_src() { return lines_of("src"); }

/// Whether a line contains one of these words. A fast filter before a slow regular expression.
template <class Words>
bool has_one_of(const std::string& line, const Words& words) {
  return std::any_of(std::begin(words), std::end(words), [&](auto word) { return line.find(word) != line.npos; });
}

/// Returns a line without comments and string literals.
std::string code_of(const std::string& line) {
  static const std::regex text(R"re("(?:[^"\\]|\\.)*")re");
  const std::string bare = std::regex_replace(line, text, "\"\"");
  return bare.substr(0, bare.find("//"));
}

TEST(Structure, EveryIncludePointsDown) {
  const std::regex include(R"re(^\s*#include "([a-z_/]+)/[a-z_]+\.(h|cuh)")re");
  int seen = 0;
  for (const Line& line : lines_of_src()) {
    if (line.text.find("#include \"") == line.text.npos) continue;
    std::smatch match;
    if (!std::regex_search(line.text, match, include) || match[1] == "hctr") continue;
    ++seen;
    ASSERT_TRUE(kDirectUses.contains(line.room) || is_format(line.room))
        << "a room that the plan does not know: " << line.file;
    EXPECT_TRUE(may_use(line.room, match[1])) << line.file << ": " << line.text;
  }
  EXPECT_GT(seen, 100);
}

TEST(Structure, CudaIsMentionedInItsThreeRoomsOnly) {
  constexpr const char* kCuda[] = {"cuda_runtime", "cudaMalloc", "<<<",           "__global__",
                                   "__device__",   "cublas",     "#include <cuda"};
  for (const Line& line : lines_of_src())
    if (!kCudaRooms.contains(line.room) && line.room != "core/base") {
      EXPECT_FALSE(has_one_of(line.text, kCuda)) << line.file << ": " << line.text;
    }
}

TEST(Structure, PreprocessorConditionsStandInThePlatformHeaders) {
  // platform.h: properties of compilers and processors. The others offer instructions of some processors as functions:
  // conversions of two-byte and one-byte numbers on GPUs, and non-temporal stores on x86.
  const std::set<std::string> platform = {"core/base/platform.h", "core/base/half.h", "core/base/fp8.h",
                                          "core/base/non_temporal.h"};
  const std::regex condition(R"(^\s*#\s*(ifdef|ifndef|if)\b)");
  for (const char* folder : {"src", "tools"})
    for (const Line& line : lines_of(folder))
      if (line.text.find('#') != line.text.npos && !platform.contains(line.file)) {
        EXPECT_FALSE(std::regex_search(line.text, condition)) << line.file << ": " << line.text;
      }
}

/// A class that needs another class's members gets them by public functions or by its constructor.
TEST(Structure, NoClassIsAFriend) {
  const std::regex word(R"(\bfriend\b)");
  for (const char* folder : {"src", "tools", "include/hctr"})
    for (const Line& line : lines_of(folder))
      if (line.text.find("friend") != line.text.npos) {
        EXPECT_FALSE(std::regex_search(code_of(line.text), word)) << line.file << ": " << line.text;
      }
}

/// The variables that are not constant and exist for the whole process or thread. Maps "file name" to the reason why
/// one variable for all objects is right. docs/architecture.md explains why they are safe.
const std::map<std::string, std::string> kProcessWide = {
    {"capi/call.cc last_message", "as errno: the message of the thread's last error in the C interface"},
    {"core/base/lasting_threads.cc threads_left", "the end of the process depends on it"},
    {"core/device/allocator.cc innermost_scope", "the scope of a thread, ended by its destructor"},
    {"core/device/cuda_runtime_calls.cu captures",
     "a call that waits for a device invalidates captures of all threads"},
    {"core/device/cupti_trace.cu current", "the trace of a thread, ended by its destructor"},
    {"core/device/cupti_trace.cu records", "CUPTI calls back without an argument of the caller"},
    {"core/device/host_parts.cc parts", "an address identifies the same memory everywhere in a process"},
    {"core/device/scoring_scope.cc rules_of_thread", "the scope of a thread, ended by its destructor"},
    {"formats/parquet/memory_table.cc sources", "a table's name may be used wherever a file's name may"},
    {"ops/gemm/blas.cc ended_", "OpenBLAS has one memory for the GEMMs of all threads"},
    {"ops/gemm/blas.cc mutex_", "OpenBLAS has one memory for the GEMMs of all threads"},
    {"ops/gemm/blas.cc running_", "OpenBLAS has one memory for the GEMMs of all threads"},
    {"plugins/grpc/plugin.cc once", "gRPC has one log and one search for deadlocks per process"},
    {"plugins/grpc/plugin.cc problem", "as errno: the last error of a thread in the plug-in's C interface"},
    {"plugins/mpi/plugin.cc comm", "MPI is initialized once per process"},
    {"plugins/mpi/plugin.cc ours", "MPI is initialized once per process"},
    {"plugins/mpi/plugin.cc problem", "MPI is initialized once per process"},
    {"plugins/mpi/plugin.cc requests", "MPI is initialized once per process"},
    {"plugins/parquet/block_pool.cc pool", "Arrow's buffers may outlive every reader"}};

/// Returns the name of the variable that a line declares, if the variable is mutable and has static or thread storage
/// duration; otherwise an empty string. Exempts thread-local variables of functions: they are only memory that the next
/// call reuses.
std::string lasting_variable_in(const std::string& line) {
  static const std::regex of_class(R"(^\s*(?:inline )?static (?:inline )?([^(=;{]*[\s*&>])(\w+)\s*(?:[=;{].*)?$)"),
      of_namespace(R"(^(?:(?:inline|extern|thread_local) )*([A-Za-z_][^(=;{]*[\s*&>])(\w+)\s*[=;{].*$)"),
      other(R"(^(?:using|namespace|struct|class|enum|union|template|concept|typedef|return|constexpr)\b)"),
      constant(R"(^(?:thread_local )?(?:constexpr\b|const [^*&]*$|const [^*]*& ?$|.*\* ?const $))");
  const bool is_static = line.find("static ") != line.npos;
  if (!is_static && (line.empty() || !std::isalpha(static_cast<unsigned char>(line[0])))) return "";
  const std::string code = code_of(line);
  std::smatch match;
  if (is_static ? !std::regex_match(code, match, of_class)
                : std::regex_search(code, other) || !std::regex_match(code, match, of_namespace))
    return "";
  const bool owns = code.find("= new ") != code.npos || code.find("= *new ") != code.npos;
  const std::string type = match[1];
  return !owns && std::regex_search(type, constant) ? "" : match[2].str();
}

TEST(Structure, AMutableVariableThatOutlivesACallIsSeen) {
  for (const char* line :
       {"  static int calls = 0;", "  static std::mutex mutex;", "static std::map<std::string, int> known;",
        "std::atomic<bool> left = false;", "  static inline std::atomic<int> running_ = 0, most_ = 0;",
        "  static Registry& all = *new Registry;", "  static auto* const pool = new Pool;", "const char* text = \"\";",
        "thread_local const Scope* innermost = nullptr;", "  static std::array<std::atomic<int>, 64> counts{};",
        "std::vector<int> requests;  // of MPI", "inline int counter = 0;", "bool ours{};", "  static char object;",
        "std::map<int, int> registry = {", "  static const Plugin* last = nullptr;"})
    EXPECT_NE(lasting_variable_in(line), "") << line;
  for (const char* line : {"  static const std::vector<int> words = {",
                           "  static constexpr int kMost = 3;",
                           "constexpr int kMost = 3;",
                           "  static int64_t most(int64_t a) { return a; }",
                           "  static std::string text();",
                           "int f(int a) {",
                           "  static void* const library = [] {",
                           "  static const Plugin& plugin =",
                           "struct Row {",
                           "class Store;",
                           "using A = int;",
                           "const std::map<int, int> kAll = {",
                           "inline constexpr bool kOn = true;",
                           "namespace hctr {",
                           "  static_assert(sizeof(int) == 4);",
                           "template <class T>",
                           "  thread_local std::vector<float> panel;",
                           "const Rule* const kRules[] = {",
                           "  static const Rule* const kRules[] = {",
                           "enum class A { a, b };"})
    EXPECT_EQ(lasting_variable_in(line), "") << line;
}

/// State belongs to an object that a caller creates, so that several models and runs in one process are independent.
TEST(Structure, ProcessWideStateIsListed) {
  std::set<std::string> found;
  for (const Line& line : lines_of_src()) {
    if (line.room == "app" || line.room == "program") continue;
    const std::string name = lasting_variable_in(line.text);
    if (name.empty()) continue;
    found.insert(line.file + " " + name);
    EXPECT_TRUE(kProcessWide.contains(line.file + " " + name))
        << "src/" << line.file << ": " << line.text
        << "\nthis variable outlives the call: move it to the object that owns it";
  }
  std::ifstream page(hctr::test::source_dir() / "docs/architecture.md");
  const std::string text(std::istreambuf_iterator<char>(page), {});
  for (const auto& [place, reason] : kProcessWide) {
    EXPECT_TRUE(found.contains(place)) << place << " no longer exists";
    const std::string file = place.substr(0, place.find(' '));
    EXPECT_NE(text.find("`" + file + "`"), text.npos) << "docs/architecture.md does not explain the state of " << file;
  }
}

/// Only program/terminal.cc writes to a terminal, because it filters control characters.
TEST(Structure, ProgramsPrintInOnePlace) {
  const std::regex prints(R"(std::(cout|cerr|clog|printf|puts|putchar|vprintf)\b|\b(stdout|stderr)\b)");
  constexpr const char* kParts[] = {"std::c", "std::p", "std::v", "stdout", "stderr"};
  for (const char* folder : {"src", "tools"})
    for (const Line& line : lines_of(folder))
      if (line.file != "program/terminal.cc" && has_one_of(line.text, kParts)) {
        EXPECT_FALSE(std::regex_search(line.text, prints)) << line.file << ": " << line.text;
      }
}

/// Returns the calls in a line that only a program may make, because they affect the whole process; empty if there are
/// none.
std::string manners_lacking_in(const std::string& line) {
  static const std::regex calls(
      R"((^|[^\w.>:])(?:std::|::)?(_Exit|_exit|exit|quick_exit|abort|atexit|at_quick_exit|set_terminate|set_new_handler)"
      R"(|getenv|secure_getenv|setenv|putenv|unsetenv|clearenv|signal|raise|sigaction|sigprocmask|pthread_sigmask)"
      R"(|printf|fprintf|vprintf|vfprintf|puts|putchar|perror|isatty|setlocale|chdir|umask|setrlimit|fork|prctl)\s*\()");
  static const std::regex names(R"(\b(environ|std::cout|std::cerr|std::clog|stdout|stderr|STD(OUT|ERR)_FILENO)\b)");
  static const std::regex declares(R"(\bvoid\s*$)");
  constexpr const char* kParts[] = {"xit",   "abort",  "terminate", "handler", "env",    "sig",    "raise",
                                    "print", "put",    "perror",    "isatty",  "stdout", "stderr", "std::c",
                                    "STD",   "locale", "dir",       "umask",   "rlimit", "fork",   "prctl"};
  if (!has_one_of(line, kParts)) return "";
  const std::string code = code_of(line);
  std::smatch match;
  if (std::regex_search(code, match, names)) return match[1];
  for (std::sregex_iterator call(code.begin(), code.end(), calls), end; call != end; ++call)
    if (!std::regex_search(call->prefix().str() + (*call)[1].str(), declares)) return (*call)[2];
  return "";
}

TEST(Structure, ALackOfMannersIsSeen) {
  for (const char* line : {"std::_Exit(1);",
                           "  ::exit(2);",
                           "if (x) abort();",
                           "std::quick_exit(0);",
                           "std::abort();",
                           "a = getenv(\"A\");",
                           "std::getenv(name.c_str())",
                           "secure_getenv(x)",
                           "::setenv(a, b, 1);",
                           "putenv(x);",
                           "unsetenv(x);",
                           "*environ",
                           "std::signal(SIGINT, f)",
                           "::sigaction(1, &a, 0)",
                           "sigprocmask(a, b, c)",
                           "pthread_sigmask(a, b, c)",
                           "std::printf(\"x\");",
                           "fprintf(f, x)",
                           "std::cout << x",
                           "std::cerr << x",
                           "std::clog",
                           "isatty(2)"})
    EXPECT_NE(manners_lacking_in(line), "") << line;
  for (const char* line :
       {"comm->abort(error);", "mpi_.abort(1);", "virtual void abort(int exit_code) noexcept = 0;", "exit_code(kind)",
        "// it calls std::_Exit(1)", "cat(\"getenv(x)\")", "std::snprintf(a, b, c)", "end_process(1)", "Job::exit(x)"})
    EXPECT_EQ(manners_lacking_in(line), "") << line;
}

/// The library runs inside other programs, so it must not exit, print, or change the environment and signals. The
/// caller passes what the library needs (include/hctr/surroundings.h).
TEST(Structure, TheLibraryHasManners) {
  std::map<std::string, int> number;
  int seen = 0;
  for (const Line& line : lines_of_src()) {
    const int at = ++number[line.file];
    if (line.room == "app" || line.room == "program") continue;
    ++seen;
    EXPECT_EQ(manners_lacking_in(line.text), "") << "src/" << line.file << ":" << at << ": " << line.text;
  }
  EXPECT_GT(seen, 10000);
}

/// If two types in a namespace had the same name, the linker would merge their functions.
TEST(Structure, TypesOfANamespaceHaveNamesOfTheirOwn) {
  const std::regex opens(R"(^namespace ([a-z_:]+) \{)"),
      type(R"(^(?:struct|class|enum class) (?:HCTR_API )?(\w+)(?: final)?(?: : .*)? \{)");
  std::map<std::string, std::string> defined_in;
  const auto begins_type = [](const std::string& line) {
    return line.starts_with("struct ") || line.starts_with("class ") || line.starts_with("enum ");
  };
  std::string file, space;
  bool unnamed = false;
  std::vector<Line> lines = lines_of_src();
  for (Line& line : lines_of("include/hctr")) lines.push_back(std::move(line));
  for (const Line& line : lines) {
    if (line.file != file) {
      file = line.file;
      space.clear();
      unnamed = false;
    }
    std::smatch match;
    if (line.text == "namespace {") unnamed = true;
    if (line.text == "}  // namespace") unnamed = false;
    if (line.text.starts_with("namespace ") && std::regex_search(line.text, match, opens)) space = match[1];
    if (unnamed || !begins_type(line.text) || !std::regex_search(line.text, match, type)) continue;
    const std::string name = space + "::" + match[1].str();
    const auto [found, added] = defined_in.insert({name, file});
    EXPECT_TRUE(added) << name << " is defined in " << found->second << " and in " << file;
  }
  EXPECT_GT(defined_in.size(), 300u);
}

/// If two headers had the same name, an #include would be ambiguous to readers.
TEST(Structure, HeadersHaveNamesOfTheirOwn) {
  std::map<std::string, std::string> found;
  for (const char* folder : {"include", "src", "tools", "test"})
    for (const auto& entry : fs::recursive_directory_iterator(hctr::test::source_dir() / folder)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cuh") continue;
      const auto [at, added] = found.insert({entry.path().filename().string(), entry.path().string()});
      EXPECT_TRUE(added) << at->second << " and " << entry.path();
    }
  EXPECT_GT(found.size(), 300u);
}

TEST(Structure, DocumentsListThePublicHeaders) {
  std::set<std::string> headers, listed;
  const fs::path folder = hctr::test::source_dir() / "include/hctr";
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) headers.insert(entry.path().lexically_relative(folder).string());
  std::ifstream page(hctr::test::source_dir() / "docs/architecture.md");
  const std::regex row(R"(^\| `([a-z_/]+\.h)` \|)");
  std::smatch match;
  for (std::string line; std::getline(page, line);)
    if (std::regex_search(line, match, row)) listed.insert(match[1]);
  EXPECT_EQ(listed, headers);
}

TEST(Structure, JsonLibraryIsIncludedOnce) {
  for (const Line& line : lines_of_src())
    if (line.file != "config/json.cc") {
      EXPECT_EQ(line.text.find("nlohmann/"), std::string::npos) << line.file;
    }
}

}  // namespace
