// Deltas through Kafka by the C interface: producer, source, and a store that follows.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "hctr/huge_ctr.h"
#include "support/mock_kafka.h"

namespace hctr::test {
namespace {

template <class T>
T sized() {
  T made{};
  made.size = sizeof made;
  return made;
}

class StreamCapi : public ::testing::Test {
 protected:
  void SetUp() override {
    HCTR_SKIP_WITHOUT_KAFKA();
    kafka_ = std::make_unique<MockKafka>(std::vector<std::string>{"t:2"});
    options_ = sized<hctr_stream_options>();
    options_.brokers = kafka_->brokers().c_str();
    options_.topic = "t";
    options_.message_bytes = 4096;
    ASSERT_EQ(hctr_delta_producer_create(&options_, &producer_), HCTR_OK) << hctr_error_message();
  }
  void TearDown() override { hctr_delta_producer_destroy(producer_); }

  static hctr_array array_of(const void* data, hctr_dtype type, const std::vector<int64_t>& shape) {
    return {const_cast<void*>(data), type, static_cast<int32_t>(shape.size()), shape.data(), nullptr, -1};
  }
  /// Key 7 gets the row {iteration, 1}, key 9 is removed.
  void publish(int64_t iteration, int64_t base) {
    hctr_delta_table table = sized<hctr_delta_table>();
    table.name = "a";
    table.dim = 2;
    table.rows = -1;
    hctr_delta_about about = sized<hctr_delta_about>();
    about.run = "r";
    about.iteration = iteration;
    about.base = base;
    about.tables = &table;
    about.table_count = 1;
    const std::vector<float> row = {static_cast<float>(iteration), 1};
    const std::vector<int64_t> one = {1}, one_by_two = {1, 2};
    const uint32_t key = 7, gone = 9;
    const hctr_array keys = array_of(&key, HCTR_U32, one), removed = array_of(&gone, HCTR_U32, one),
                     rows = array_of(row.data(), HCTR_F32, one_by_two);
    EXPECT_EQ(hctr_delta_producer_begin(producer_, &about), HCTR_OK) << hctr_error_message();
    EXPECT_EQ(hctr_delta_producer_rows(producer_, 0, &keys, &rows, nullptr), HCTR_OK) << hctr_error_message();
    EXPECT_EQ(hctr_delta_producer_removed(producer_, 0, &removed, nullptr), HCTR_OK) << hctr_error_message();
    EXPECT_EQ(hctr_delta_producer_file(producer_, "dense", "xyz", 3), HCTR_OK) << hctr_error_message();
    EXPECT_EQ(hctr_delta_producer_end(producer_), HCTR_OK) << hctr_error_message();
  }

  std::unique_ptr<MockKafka> kafka_;
  hctr_stream_options options_{};
  hctr_delta_producer* producer_ = nullptr;
};

TEST_F(StreamCapi, ASourceReturnsWhatAProducerPublished) {
  publish(5, -1);
  hctr_delta_source* source = nullptr;
  ASSERT_EQ(hctr_delta_source_create(&options_, nullptr, nullptr, -1, &source), HCTR_OK) << hctr_error_message();
  hctr_delta* delta = nullptr;
  ASSERT_EQ(hctr_delta_source_next(source, 60, &delta), HCTR_OK) << hctr_error_message();
  ASSERT_NE(delta, nullptr);
  hctr_delta_about about = sized<hctr_delta_about>();
  size_t files = 0;
  ASSERT_EQ(hctr_delta_read_about(delta, &about, &files), HCTR_OK);
  EXPECT_STREQ(about.run, "r");
  EXPECT_EQ(about.iteration, 5);
  EXPECT_EQ(about.table_count, 1u);
  EXPECT_EQ(files, 1u);
  hctr_delta_table table = sized<hctr_delta_table>();
  hctr_delta_rows rows = sized<hctr_delta_rows>();
  ASSERT_EQ(hctr_delta_read_table(delta, 0, &table, &rows), HCTR_OK);
  EXPECT_STREQ(table.name, "a");
  ASSERT_EQ(rows.count, 1);
  EXPECT_EQ(rows.keys[0], 7);
  EXPECT_EQ(rows.vectors[0], 5);
  ASSERT_EQ(rows.removed_count, 1);
  EXPECT_EQ(rows.removed[0], 9);
  EXPECT_EQ(rows.slots, nullptr);
  const char* name = nullptr;
  const void* bytes = nullptr;
  size_t count = 0;
  ASSERT_EQ(hctr_delta_read_file(delta, 0, &name, &bytes, &count), HCTR_OK);
  EXPECT_EQ(std::string(static_cast<const char*>(bytes), count), "xyz");
  EXPECT_EQ(hctr_delta_read_table(delta, 1, &table, &rows), HCTR_USAGE);
  hctr_delta_destroy(delta);
  EXPECT_EQ(hctr_delta_source_taken(source), HCTR_OK);
  ASSERT_EQ(hctr_delta_source_next(source, 0, &delta), HCTR_OK);
  EXPECT_EQ(delta, nullptr);
  hctr_delta_source_destroy(source);
}

TEST_F(StreamCapi, AStoreFollows) {
  hctr_store_options open = sized<hctr_store_options>();
  open.config_text = "{}";
  hctr_store* store = nullptr;
  ASSERT_EQ(hctr_store_open(&open, &store), HCTR_OK) << hctr_error_message();
  hctr_store_source table = sized<hctr_store_source>();
  const std::vector<int64_t> none = {0}, none_by_two = {0, 2};
  int64_t unused = 0;
  table.name = "a";
  table.dim = 2;
  table.keys = array_of(&unused, HCTR_I64, none);
  table.vectors = array_of(&unused, HCTR_F32, none_by_two);
  hctr_store_model model = sized<hctr_store_model>();
  model.name = "m";
  model.tables = &table;
  model.table_count = 1;
  ASSERT_EQ(hctr_store_load(store, &model), HCTR_OK) << hctr_error_message();

  hctr_store_stream_options follow = sized<hctr_store_stream_options>();
  follow.stream = options_;
  hctr_store_stream* stream = nullptr;
  ASSERT_EQ(hctr_store_stream_create(store, "m", &follow, &stream), HCTR_OK) << hctr_error_message();
  publish(1, -1);
  publish(2, 1);
  int64_t applied = 0;
  ASSERT_EQ(hctr_store_stream_catch_up(stream, 60, &applied), HCTR_OK) << hctr_error_message();
  EXPECT_EQ(applied, 2);
  hctr_store_stream_state state = sized<hctr_store_stream_state>();
  state.stream = sized<hctr_stream_statistics>();
  const char *error = nullptr, *trouble = nullptr;
  ASSERT_EQ(hctr_store_stream_statistics(stream, &state, &error, &trouble), HCTR_OK) << hctr_error_message();
  EXPECT_EQ(state.applied, 2);
  EXPECT_EQ(state.stream.deltas, 2);
  EXPECT_STREQ(error, "");

  hctr_store_view* view = nullptr;
  ASSERT_EQ(hctr_store_view_create(store, "m", &view), HCTR_OK) << hctr_error_message();
  const int64_t key = 7;
  std::array<float, 2> row{};
  const std::vector<int64_t> one = {1}, one_by_two = {1, 2};
  const hctr_array keys = array_of(&key, HCTR_I64, one), rows = array_of(row.data(), HCTR_F32, one_by_two);
  ASSERT_EQ(hctr_store_get(view, 0, 0, &keys, &rows, nullptr, nullptr), HCTR_OK) << hctr_error_message();
  EXPECT_EQ(row, (std::array<float, 2>{2, 1}));
  hctr_store_view_destroy(view);
  hctr_store_stream_destroy(stream);
  hctr_store_destroy(store);
}

TEST(StreamCapiErrors, NameTheField) {
  hctr_stream_options options = sized<hctr_stream_options>();
  hctr_delta_source* source = nullptr;
  EXPECT_EQ(hctr_delta_source_create(&options, nullptr, nullptr, -1, &source), HCTR_USAGE);
  EXPECT_NE(std::string(hctr_error_message()).find("brokers"), std::string::npos) << hctr_error_message();
  options.brokers = "localhost:1";
  const char* const setting = "novalue";
  options.librdkafka = &setting;
  options.librdkafka_count = 1;
  EXPECT_EQ(hctr_delta_source_create(&options, nullptr, nullptr, -1, &source), HCTR_USAGE);
  EXPECT_NE(std::string(hctr_error_message()).find("name=value"), std::string::npos) << hctr_error_message();
}

}  // namespace
}  // namespace hctr::test
