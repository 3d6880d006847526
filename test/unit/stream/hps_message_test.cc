#include "stream/hps_message.h"

#include <gtest/gtest.h>

#include <limits>

#include "hctr/error.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

using namespace std::string_literals;

/// The expected bytes follow the description of the format, not our encoder.
TEST(HpsMessage, HasTheBytesOfTheOriginal) {
  const std::vector<int64_t> keys = {258, -1};
  const std::vector<float> rows = {1, -2};
  EXPECT_EQ(write_hps_message(keys, rows, 1, 8),
            "HCTR\x04\0\0\0\x02\x01\0\0\0\0\0\0\0\0\x80\x3f\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\xc0"s);
  EXPECT_EQ(write_hps_message({keys.data(), 1}, {rows.data(), 1}, 1, 4), "HCTR\x04\0\0\0\x02\x01\0\0\0\0\x80\x3f"s);
  EXPECT_NE(message_of(Kind::data, [&] { write_hps_message(keys, rows, 1, 4); }).find("key -1"), std::string::npos);
  EXPECT_EQ(hps_topic("wdl", "t1"), "hps_et.wdl.t1");
}

/// The expected values were computed from the formula of rrxmrrxmsx_0 by separate code.
TEST(HpsMessage, KeysAreSpreadAsByTheOriginal) {
  EXPECT_EQ(hps_mixed(0), 0u);
  EXPECT_EQ(hps_mixed(1), 0xdadbfeeb7d64133u);
  EXPECT_EQ(hps_mixed(~uint64_t{0}), 0xe398180adc04d6fcu);
  int counts[kHpsKeyGroups] = {};
  for (int64_t key = 0; key < 8000; ++key) ++counts[hps_key_group(key)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(HpsMessage, IsReadBackAndWhatIsWrongIsNamed) {
  const std::vector<int64_t> keys = {7, 1LL << 40};
  const std::vector<float> rows = {1, 2, 3, 4};
  std::vector<int64_t> keys_read;
  std::vector<float> rows_read;
  const std::string message = write_hps_message(keys, rows, 2, 8);
  EXPECT_EQ(read_hps_message(message, 2, 8, keys_read, rows_read), "");
  EXPECT_EQ(read_hps_message("HCTR\x08\0\0\0"s, 2, 8, keys_read, rows_read), "");
  EXPECT_EQ(keys_read, keys);
  EXPECT_EQ(rows_read, rows);
  for (const std::string& wrong :
       {"HCTS\x08\0\0\0"s, "HCTR\x08"s, message.substr(0, message.size() - 1), message.substr(0, 20)})
    EXPECT_NE(read_hps_message(wrong, 2, 8, keys_read, rows_read), "");
  EXPECT_NE(read_hps_message(message, 3, 8, keys_read, rows_read), "");
  const std::vector<float> odd = {1, std::numeric_limits<float>::infinity()};
  EXPECT_NE(read_hps_message(write_hps_message({keys.data(), 1}, odd, 2, 8), 2, 8, keys_read, rows_read), "");
  EXPECT_EQ(keys_read, keys);
  EXPECT_EQ(rows_read, rows);
}

}  // namespace
}  // namespace hctr::test
