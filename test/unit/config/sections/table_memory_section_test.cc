// The solver's "table_memory": sizes, errors and resulting budgets.
#include <gtest/gtest.h>

#include "config/sections/table_memory.h"
#include "core/comm/self_comm.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

/// Returns the parsed section, and its problems as text.
std::pair<TableMemory, std::string> table_memory_of(const std::string& json) {
  Problems problems;
  const TableMemory section = table_memory_schema().parse(Json::parse(json, "test"), "/solver/table_memory", problems);
  std::string text;
  for (const auto& error : problems.errors()) text += error.pointer + ": " + error.message + "\n";
  return {section, text};
}

TEST(TableMemorySection, ReadsSizes) {
  const auto [given, problems] = table_memory_of(R"({"gpu": "20GB", "host": 0.25})");
  EXPECT_EQ(problems, "");
  EXPECT_EQ(given.gpu.of(7, 1), 20'000'000'000);
  EXPECT_EQ(given.host.of(1000, 1), 250);
  EXPECT_EQ(table_memory_of(R"({"gpu": "1.5 MiB"})").first.gpu.of(0, 1), 3 << 19);
  EXPECT_EQ(table_memory_of(R"({"gpu": "0B"})").first.gpu.of(9, 1), 0);
  EXPECT_EQ(table_memory_of(R"({"host": "auto"})").first.host.of(1000, 0.5), 500);
}

TEST(TableMemorySection, RefusesWhatItDoesNotKnow) {
  for (const char* size :
       {"\"20\"", "\"20 bytes\"", "\"-1GB\"", "\"GB\"", "\"1e30GB\"", "0", "1.5", "-0.5", "[1, 2]", "true"}) {
    const std::string problems = table_memory_of(std::string(R"({"gpu": )") + size + "}").second;
    EXPECT_NE(problems.find("/solver/table_memory/gpu"), std::string::npos) << size << ": " << problems;
    EXPECT_NE(problems.find("20GB"), std::string::npos) << size << ": " << problems;
  }
  EXPECT_NE(table_memory_of(R"({"ssd": "2TB"})").second, "");
}

TEST(TableMemorySection, GivesTheRanksOfAHostEqualParts) {
  const TableMemory given = table_memory_of(R"({"gpu": "3MB", "host": "8GB"})").first;
  const RowMemoryLimits one = row_memory_limits(given, kCpu, 1), of_four = row_memory_limits(given, kCpu, 4);
  EXPECT_EQ(one.device, 3'000'000);
  EXPECT_EQ(of_four.device, 3'000'000) << "each rank has its own";
  EXPECT_EQ(one.host, 8'000'000'000);
  EXPECT_EQ(of_four.host, 2'000'000'000);
  EXPECT_EQ(one.move_every, 128);
  EXPECT_EQ(row_memory_limits(table_memory_of(R"({"host": "1GB", "move_every": 5})").first, kCpu, 1).move_every, 5);
  EXPECT_NE(table_memory_of(R"({"move_every": -1})").second, "");
}

TEST(TableMemorySection, NamesADisk) {
  const TemporaryFolder folder;
  const std::string disk = (folder / "rows").string();
  const auto text = [&](const std::string& limit) {
    return R"({"host": "1GB", "disk": ")" + disk + R"(", "disk_limit": )" + limit + "}";
  };
  const TableMemory given = table_memory_of(text(R"("2TB")")).first;
  EXPECT_EQ(row_memory_limits(given, kCpu, 1).disk, 2'000'000'000'000);
  EXPECT_EQ(row_memory_limits(given, kCpu, 2).disk, 1'000'000'000'000);
  EXPECT_EQ(row_memory_limits(given, kCpu, 1).disk_folder, disk);
  EXPECT_GT(row_memory_limits(table_memory_of(text(R"("auto")")).first, kCpu, 1).disk, 0);
  EXPECT_TRUE(row_memory_limits(table_memory_of(R"({"host": "1GB"})").first, kCpu, 1).disk_folder.empty());
  TableMemory no_folder = given;
  no_folder.disk = "/proc/rows";
  const std::string message = message_of(Kind::io, [&] { row_memory_limits(no_folder, kCpu, 1); });
  EXPECT_NE(message.find("'/proc/rows'"), std::string::npos) << message;
}

TEST(OwnTableMemory, SaysSomeOfItAndHasTheRestAsTheSolver) {
  const TableMemory of_solver =
      table_memory_of(R"({"gpu": "3MB", "host": "8GB", "disk": "rows", "move_every": 7})").first;
  const auto own_of = [](const std::string& json) {
    Problems problems;
    const OwnTableMemory own = own_table_memory_schema().parse(Json::parse(json, "test"), "/table_memory", problems);
    problems.throw_if_any("test");
    return own;
  };
  const TableMemory given = own_of(R"({"host": "1GB", "disk": ""})").with(of_solver);
  EXPECT_EQ(given.gpu.bytes, 3'000'000);
  EXPECT_EQ(given.host.bytes, 1'000'000'000);
  EXPECT_EQ(given.disk, "") << "this table has none";
  EXPECT_EQ(given.move_every, 7);
  EXPECT_EQ(own_of(R"({"gpu": "auto"})").with(of_solver).gpu.kind, MemorySize::Kind::automatic);
  EXPECT_EQ(own_of(R"({"disk_limit": 0.5})").with(of_solver).disk, "rows");
  EXPECT_NE(message_of(Kind::config, [&] { own_of(R"({"move_every": 3})"); }).find("/table_memory/move_every"),
            std::string::npos);
  const auto problems_of = [&](const std::string& json, const TableMemory& solver) {
    Problems problems;
    check_table_memory(own_of(json), solver, "/layers/1/table_memory", problems);
    return problems.errors().empty() ? "" : problems.errors()[0].pointer + ": " + problems.errors()[0].message;
  };
  EXPECT_EQ(problems_of(R"({"disk_limit": "1GB"})", of_solver), "");
  EXPECT_NE(problems_of(R"({"disk_limit": "1GB"})", {}).find("/layers/1/table_memory/disk_limit: needs \"disk\""),
            std::string::npos);
  EXPECT_NE(problems_of(R"({"disk_limit": "1GB", "disk": ""})", of_solver).find("keeps this table's rows in memory"),
            std::string::npos);
}

/// The budget of one table, which inherits unset tiers from the budget of the run.
struct OwnRowMemory {
  OwnRowMemory(const std::string& solver, const std::string& own) {
    Problems problems;
    const OwnTableMemory section = own_table_memory_schema().parse(Json::parse(own, "test"), "/table_memory", problems);
    problems.throw_if_any("test");
    const TableMemory of_solver = table_memory_of(solver).first;
    SelfComm comm;
    run = std::make_unique<RowMemory>(kCpu, row_memory_limits(of_solver, kCpu, 1));
    table = own_row_memory(section, of_solver, "wide", *run, kCpu, comm);
  }
  std::unique_ptr<RowMemory> run;
  std::shared_ptr<RowMemory> table;
};

TEST(OwnTableMemory, SharesWithTheRunWhatItDoesNotState) {
  const TemporaryFolder folder;
  const std::string disk = cat(R"("disk": ")", folder.path().string(), "\"");
  const OwnRowMemory of(R"({"gpu": "3MB", "host": "8MB", )" + disk + R"(, "disk_limit": "9MB"})", R"({"host": "2MB"})");
  of.table->take_device(100), of.table->take_host(20), of.table->take_disk(3);
  EXPECT_EQ(of.run->device_room(), 3'000'000 - 100);
  EXPECT_EQ(of.run->host_room(), 8'000'000) << "of which this table takes nothing";
  EXPECT_EQ(of.run->disk_room(), 9'000'000 - 3);
  of.run->take_device(1000), of.run->take_host(1000), of.run->take_disk(1000);
  EXPECT_EQ(of.table->device_room(), 3'000'000 - 1100);
  EXPECT_EQ(of.table->host_room(), 2'000'000 - 20);
  EXPECT_EQ(of.table->disk_room(), 9'000'000 - 1003);
  EXPECT_EQ(of.table->limits().host_setting, "\"host\" of \"table_memory\" of 'wide'");
  EXPECT_EQ(of.table->limits().device_setting, "\"gpu\" of \"table_memory\"") << "the one to be raised";

  const OwnRowMemory other(R"({"gpu": "3MB", "host": "8MB"})", "{" + disk + R"(, "disk_limit": "1MB"})");
  EXPECT_FALSE(other.run->has_disk());
  EXPECT_EQ(other.table->disk_room(), 1'000'000);
  other.table->take_host(7);
  EXPECT_EQ(other.run->host_room(), 8'000'000 - 7);

  const OwnRowMemory alone("{}", R"({"host": "2MB"})");
  EXPECT_EQ(alone.table->limits().device, 0) << "without a budget of the run there is one memory, the table's";
  alone.table->take_host(7);
  EXPECT_EQ(alone.run->host_bytes(), 0);
  EXPECT_EQ(alone.table->host_room(), 2'000'000 - 7);
}

TEST(TableMemorySection, IsNoLimitOnACpuUnlessItStatesOne) {
  const RowMemoryLimits none = row_memory_limits({}, kCpu, 1);
  EXPECT_FALSE(none.device);
  EXPECT_EQ(none.host, 0);
  const RowMemoryLimits host_alone = row_memory_limits(table_memory_of(R"({"host": "1GB"})").first, kCpu, 1);
  EXPECT_EQ(host_alone.device, 0);
  EXPECT_EQ(host_alone.host, 1'000'000'000);
  EXPECT_GT(free_memory(Device{}), 0);
}

}  // namespace
}  // namespace hctr::test
