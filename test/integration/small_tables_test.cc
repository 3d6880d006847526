// If several tables share a memory budget, small tables are in GPU memory completely.
#include <gtest/gtest.h>

#include "config/json.h"
#include "core/base/expect.h"
#include "support/devices.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class SmallTables : public testing::Test {
 protected:
  /// Makes the first table of the config large and the second small.
  void make_large_table_first() {
    config_ = with_change(small_config(), R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 1)",
                          R"("index": "direct", "slot_size_array": [4000000], "embedding_vec_size": 1)");
    config_ = with_change(config_, R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 5)",
                          R"("slot_size_array": [300, 300, 300], "embedding_vec_size": 5)");
    config_ = with_change(config_, R"("update_type": "Global")", R"("update_type": "Local")");
    write_file(folder_ / "data.json", config_);
    make_data(folder_.path(), "data.json", 3000, 300, {"--vocabulary", "300"});
  }
  Json tables(const std::string& config, const std::string& device, const std::string& run) {
    write_file(folder_ / "config.json", config);
    const Outcome done =
        run_program("huge_ctr", {"--train", "config.json", "--device", device, "--run-dir", run}, folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const Json summary = Json::read_file((folder_ / run / "summary.json").string());
    const Json* const tables = summary.find("tables");
    return tables ? *tables : Json();
  }
  std::string config_;
  TemporaryFolder folder_;
};

/// The large table has 48 MB of rows, and needs 37 MB of GPU memory for its keys and index.
TEST_F(SmallTables, AreOnTheGpuWholeWhereALargeOneIsNot) {
  make_large_table_first();
  for (const Device device : devices()) {
    const std::string name = device.is_cuda() ? "cuda" : "cpu";
    SCOPED_TRACE(name);
    const char* const gpu = device.is_cuda() ? "56MB" : "40MB";  // GPU memory is allocated in granules of 2 MB
    const Json limited =
        tables(with_change(config_, R"("seed": 7)",
                           cat(R"("seed": 7, "table_memory": {"gpu": ")", gpu, R"(", "host": "1GB"})")),
               name, name + "-run");
    const Json* const large = limited.find("wide_emb");
    ASSERT_TRUE(large && large->find("rows_in_host_memory"));
    EXPECT_GT(*large->find("rows_in_host_memory")->integer(), 1000000);
    const Json* const small = limited.find("deep_emb");
    EXPECT_FALSE(small && small->find("rows_in_host_memory"));
  }
}

/// The small table has no more keys than a batch. The large table gets all remaining memory.
TEST_F(SmallTables, DoNotLeaveForTheDisk) {
  config_ = with_change(small_config(), R"("check": "Sum")",
                        R"("check": "Sum", "slot_size_array": [100, 20000, 20000, 20000])");
  config_ = with_change(config_, R"("embedding_vec_size": 5)", R"("embedding_vec_size": 256)");
  config_ = with_change(config_, R"("leading_dim": 15)", R"("leading_dim": 768)");
  config_ = with_change(config_, R"("update_type": "Global")", R"("update_type": "Local")");
  write_file(folder_ / "data.json", config_);
  make_data(folder_.path(), "data.json", 3000, 300);
  const Json limited =
      tables(with_change(config_, R"("seed": 7)", R"("seed": 7, "table_memory": {"host": "10MB", "disk": "rows"})"),
             "cpu", "run");
  const Json* const large = limited.find("deep_emb");
  ASSERT_TRUE(large && large->find("rows_to_disk"));
  EXPECT_GT(*large->find("rows_to_disk")->integer(), 3000);
  const Json* const small = limited.find("wide_emb");
  ASSERT_TRUE(small);
  EXPECT_FALSE(small->find("rows_to_disk"));
  EXPECT_EQ(*small->find("rows_in_host_memory")->integer(), 100);
}

}  // namespace
}  // namespace hctr::test
