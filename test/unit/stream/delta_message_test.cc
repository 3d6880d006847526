#include "stream/delta_message.h"

#include <gtest/gtest.h>

#include "hctr/error.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

StreamedAbout about_two_tables() {
  return {.run = "r-1",
          .iteration = 20,
          .base = 10,
          .written = 1.5,
          .tables = {{.name = "a", .dim = 3, .rows = 7}, {.name = "b", .dim = 2, .by_slot = true}}};
}

struct Message {
  std::string bytes;
  uint32_t crc = 0;
};

Message message_of_rows() {
  const std::vector<int64_t> keys = {-5, 1LL << 60};
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6.5f};
  Message message;
  message.crc = write_delta_message({.kind = DeltaMessageKind::rows,
                                     .table = 0,
                                     .stream = 0xfedcba9876543210,
                                     .sequence = 77,
                                     .delta = 8,
                                     .index = 9,
                                     .count = 2},
                                    rows_body({}, keys, rows), message.bytes);
  return message;
}

TEST(DeltaMessage, ComesBackAsItWasWritten) {
  const Message message = message_of_rows();
  DeltaMessageHead head;
  std::string_view body;
  ASSERT_EQ(read_delta_message(message.bytes, head, body), "");
  EXPECT_EQ(head.kind, DeltaMessageKind::rows);
  EXPECT_EQ(head.stream, 0xfedcba9876543210);
  EXPECT_EQ(head.sequence, 77u);
  EXPECT_EQ(head.delta, 8u);
  EXPECT_EQ(head.index, 9u);
  EXPECT_EQ(head.crc, message.crc);
  StreamedDelta delta{.about = about_two_tables(), .tables = std::vector<StreamedDelta::Rows>(2)};
  add_message(head, body, delta);
  EXPECT_EQ(delta.tables[0].keys, (std::vector<int64_t>{-5, 1LL << 60}));
  EXPECT_EQ(delta.tables[0].rows, (std::vector<float>{1, 2, 3, 4, 5, 6.5f}));

  const std::vector<int32_t> slots = {4, 0};
  const std::vector<int64_t> keys = {1, 2};
  head = {.kind = DeltaMessageKind::removed, .table = 1, .count = 2};
  add_message(head, rows_body(slots, keys, {}), delta);
  EXPECT_EQ(delta.tables[1].removed_slots, slots);
  EXPECT_EQ(delta.tables[1].removed, keys);
  head = {.kind = DeltaMessageKind::file, .count = 3};
  add_message(head, file_body("dense", 0, 5, "abc"), delta);
  head.count = 2;
  add_message(head, file_body("dense", 3, 5, "de"), delta);
  EXPECT_EQ(delta.files, (std::vector<std::pair<std::string, std::string>>{{"dense", "abcde"}}));
}

TEST(DeltaMessage, TheFirstOneSaysWhatTheDeltaIs) {
  const StreamedAbout about = read_begin_body(begin_body(about_two_tables()));
  EXPECT_EQ(about.run, "r-1");
  EXPECT_EQ(about.iteration, 20);
  EXPECT_EQ(about.base, 10);
  EXPECT_EQ(about.written, 1.5);
  ASSERT_EQ(about.tables.size(), 2u);
  EXPECT_EQ(about.tables[0].rows, 7);
  EXPECT_EQ(about.tables[1].name, "b");
  EXPECT_TRUE(about.tables[1].by_slot);
}

TEST(DeltaMessage, EachChangedByteAndEachCutIsSeen) {
  const Message message = message_of_rows();
  DeltaMessageHead head;
  std::string_view body;
  for (size_t i = 0; i < message.bytes.size(); ++i) {
    std::string other = message.bytes;
    for (const int change : {1, 0x80, 0xff}) {
      other[i] = static_cast<char>(message.bytes[i] ^ change);
      EXPECT_NE(read_delta_message(other, head, body), "") << i;
    }
    EXPECT_NE(read_delta_message(std::string_view(message.bytes).substr(0, i), head, body), "") << i;
  }
  EXPECT_NE(read_delta_message(message.bytes + '\0', head, body), "");
}

TEST(DeltaMessage, RowsThatDoNotFitTheTableAreErrors) {
  StreamedDelta delta{.about = about_two_tables(), .tables = std::vector<StreamedDelta::Rows>(2)};
  const std::vector<int64_t> keys = {1};
  const std::vector<float> rows = {1, 2};
  const std::string body = rows_body({}, keys, rows);
  const auto add = [&](DeltaMessageHead head) { return [&, head] { add_message(head, body, delta); }; };
  EXPECT_NE(message_of(Kind::data, add({.kind = DeltaMessageKind::rows, .table = 0, .count = 1})).find("'a'"),
            std::string::npos);
  EXPECT_NE(message_of(Kind::data, add({.kind = DeltaMessageKind::rows, .table = 2, .count = 1}))
                .find("the delta has 2 tables"),
            std::string::npos);
  EXPECT_NE(message_of(Kind::data, add({.kind = DeltaMessageKind::file, .count = 100})).find("does not match its"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
