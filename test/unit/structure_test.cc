// The arrows between rooms point down, CUDA stays in its three rooms, and #ifdef in its five files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/paths.h"

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::vector<std::string>> kDirectUses = {
    {"base", {}},
    {"config", {"base"}},
    {"device", {"base"}},
    {"comm", {"device"}},
    {"checkpoint", {"device", "config"}},
    {"ops", {"device"}},
    {"ops/embedding", {"ops"}},
    {"metrics", {"config"}},
    {"data", {"config"}},
    {"data/io", {"base"}},
    {"data/formats", {"data", "data/io"}},  // and every format
    {"data/reader", {"data/formats"}},
    {"layers", {"ops", "config"}},
    {"optim", {"ops", "config"}},
    {"embedding", {"ops/embedding", "comm", "optim", "config", "checkpoint"}},
    {"model", {"data/formats", "metrics", "layers", "optim", "embedding"}},
    {"train", {"model", "comm", "data/reader"}},
    {"export", {"model"}},
    {"use", {"train", "export"}},
    {"report", {"use"}},
    {"app", {"report", "prepare/init"}},
    {"parquet", {"data/parquet"}},
    {"mpi", {"comm"}},
    {"prepare", {"data/formats"}},
    {"prepare/write", {"data/formats"}},
    {"prepare/preprocess", {"prepare", "prepare/write"}},
    {"prepare/generate", {"prepare/write", "metrics"}},
    {"prepare/inspect", {"prepare"}},
    {"prepare/init", {"prepare/inspect"}},
};
const std::set<std::string> kCudaRooms = {"device", "comm", "ops", "ops/embedding"};

/// A folder of one data format, such as data/raw: it may use data and data/io, and need not be listed above.
bool is_format(const std::string& room) { return room.starts_with("data/") && !kDirectUses.contains(room); }

std::set<std::string> reachable(const std::string& room) {
  if (is_format(room)) return {room, "base", "config", "data", "data/io"};
  std::set<std::string> rooms = {room};
  for (const std::string& next : kDirectUses.at(room)) rooms.merge(reachable(next));
  return rooms;
}

bool may_use(const std::string& room, const std::string& other) {
  const std::set<std::string> rooms = reachable(room);
  return rooms.contains(other) || (is_format(other) && rooms.contains("data/formats"));
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

TEST(Structure, EveryIncludePointsDown) {
  const std::regex include(R"re(^\s*#include "([a-z_/]+)/[a-z_]+\.(h|cuh)")re");
  int seen = 0;
  for (const Line& line : lines_of_src()) {
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
  const std::regex cuda(R"(cuda_runtime|cudaMalloc|<<<|__global__|__device__|cublas|#include <cuda)");
  for (const Line& line : lines_of_src())
    if (!kCudaRooms.contains(line.room) && line.room != "base") {
      EXPECT_FALSE(std::regex_search(line.text, cuda)) << line.file << ": " << line.text;
    }
}

TEST(Structure, PreprocessorConditionsStandInFiveFiles) {
  const std::regex condition(R"(^\s*#\s*(ifdef|ifndef|if)\b)");
  for (const Line& line : lines_of_src())
    if (line.file != "base/platform.h" && line.file != "base/half.h" && line.file != "base/fp8.h" &&
        line.file != "data/non_temporal.h" && line.file != "embedding/record_checksum.cc") {
      EXPECT_FALSE(std::regex_search(line.text, condition)) << line.file << ": " << line.text;
    }
}

/// base/terminal.cc alone writes to a terminal, since it lets no control character pass.
TEST(Structure, ProgramsPrintInOnePlace) {
  const std::regex prints(R"(std::(cout|cerr|clog|printf|puts|putchar|vprintf)\b|\b(stdout|stderr)\b)");
  for (const char* folder : {"src", "tools"})
    for (const Line& line : lines_of(folder))
      if (line.file != "base/terminal.cc") {
        EXPECT_FALSE(std::regex_search(line.text, prints)) << line.file << ": " << line.text;
      }
}

/// Two types of one name in one namespace are one type to the linker, which takes the functions of either.
TEST(Structure, TypesOfANamespaceHaveNamesOfTheirOwn) {
  const std::regex opens(R"(^namespace ([a-z_:]+) \{)"),
      type(R"(^(?:struct|class|enum class) (\w+)(?: final)?(?: : .*)? \{)");
  std::map<std::string, std::string> defined_in;
  std::string file, space;
  bool unnamed = false;
  for (const Line& line : lines_of_src()) {
    if (line.file != file) {
      file = line.file;
      space.clear();
      unnamed = false;
    }
    std::smatch match;
    if (line.text == "namespace {") unnamed = true;
    if (line.text == "}  // namespace") unnamed = false;
    if (std::regex_search(line.text, match, opens)) space = match[1];
    if (unnamed || !std::regex_search(line.text, match, type)) continue;
    const std::string name = space + "::" + match[1].str();
    const auto [found, added] = defined_in.insert({name, file});
    EXPECT_TRUE(added) << name << " is defined in " << found->second << " and in " << file;
  }
  EXPECT_GT(defined_in.size(), 300u);
}

TEST(Structure, JsonLibraryIsIncludedOnce) {
  for (const Line& line : lines_of_src())
    if (line.file != "config/json.cc") {
      EXPECT_EQ(line.text.find("nlohmann/"), std::string::npos) << line.file;
    }
}

}  // namespace
