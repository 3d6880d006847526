#include "train/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <optional>

#include "support/message_of.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"
#include "support/test_log.h"

namespace hctr::test {
namespace {

/// A protocol buffer's fields by number. Nested messages are bytes. The parser follows the format description, not our
/// writer.
struct Field {
  int number = 0;
  uint64_t value = 0;
  std::string bytes;
};
std::vector<Field> fields_of(const std::string& message) {
  std::vector<Field> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    Field field{.number = static_cast<int>(tag >> 3)};
    if ((tag & 7) == 0) {
      field.value = varint();
    } else {
      const size_t size = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : varint();
      field.bytes = message.substr(at, size);
      EXPECT_EQ(field.bytes.size(), size);
      if ((tag & 7) != 2) std::memcpy(&field.value, field.bytes.data(), size);
      at += size;
    }
    fields.push_back(field);
  }
  return fields;
}

uint32_t crc_bit_by_bit(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

/// Returns the records of a file, and verifies both checksums of each record.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    uint64_t size = 0;
    uint32_t head = 0, body = 0;
    std::memcpy(&size, file.data() + at, 8);
    std::memcpy(&head, file.data() + at + 8, 4);
    EXPECT_EQ(head, crc_bit_by_bit(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, size));
    std::memcpy(&body, file.data() + at + 12 + size, 4);
    EXPECT_EQ(body, crc_bit_by_bit(records.back()));
    at += 16 + size;
  }
  return records;
}

struct Scalar {
  double time = 0;
  int64_t step = 0;
  std::string tag;
  float value = 0;
};
std::vector<Scalar> scalars_in(const std::vector<std::string>& records) {
  std::vector<Scalar> scalars;
  for (const std::string& record : records) {
    Scalar scalar;
    for (const Field& field : fields_of(record)) {
      if (field.number == 1) scalar.time = std::bit_cast<double>(field.value);
      if (field.number == 2) scalar.step = static_cast<int64_t>(field.value);
      if (field.number != 5) continue;
      for (const Field& value : fields_of(field.bytes)) {
        for (const Field& part : fields_of(value.bytes)) {
          if (part.number == 1) scalar.tag = part.bytes;
          if (part.number == 2) scalar.value = std::bit_cast<float>(static_cast<uint32_t>(part.value));
        }
        scalars.push_back(scalar);
      }
    }
  }
  return scalars;
}

std::string only_file(const fs::path& folder) {
  std::vector<fs::path> files(fs::directory_iterator(folder), {});
  EXPECT_EQ(files.size(), 1u);
  EXPECT_TRUE(files.at(0).filename().string().starts_with("events.out.tfevents."));
  return read_file(files.at(0));
}

TEST(EventFile, Crc32cHasItsCheckValue) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventFile, AReaderFindsTheNumbersOfEveryLine) {
  const TemporaryFolder folder;
  TestLog log;
  {
    EventFile file(folder.path(), 0, log.log());
    file.add(Json::parse(R"({"kind":"train","iteration":300,"loss":0.5,"seconds":3})", ""), 1000.25);
    file.add(Json::parse(R"({"kind":"eval","iteration":400,"AUC":0.75,"LogLoss":null})", ""), 1001.5);
    file.add(Json::parse(R"({"kind":"table","iteration":400,"table":"emb","rows":17})", ""), 1002);
    file.add(Json::parse(R"({"kind":"start","schema":1})", ""), 1003);
  }
  const auto records = records_of(only_file(folder.path()));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(fields_of(records[0]).at(2).number, 3);
  EXPECT_EQ(fields_of(records[0]).at(2).bytes, "brain.Event:2");
  const auto scalars = scalars_in(records);
  ASSERT_EQ(scalars.size(), 3u);
  EXPECT_EQ(scalars[0].tag, "train/loss");
  EXPECT_EQ(scalars[0].step, 300);
  EXPECT_EQ(scalars[0].time, 1000.25);
  EXPECT_EQ(scalars[0].value, 0.5f);
  EXPECT_EQ(scalars[1].tag, "eval/AUC");
  EXPECT_EQ(scalars[1].value, 0.75f);
  EXPECT_EQ(scalars[2].tag, "table/emb/rows");
  EXPECT_EQ(scalars[2].value, 17.0f);
}

TEST(EventFile, OfARunThatGoesOnReplacesLaterStepsOfEarlierFiles) {
  const TemporaryFolder folder;
  TestLog log;
  { EventFile file(folder.path(), 41, log.log()); }
  const auto records = records_of(only_file(folder.path()));
  ASSERT_EQ(records.size(), 2u);
  const auto fields = fields_of(records[1]);
  ASSERT_EQ(fields.size(), 3u);
  EXPECT_EQ(fields[1].value, 41u);
  EXPECT_EQ(fields[2].number, 7);
  EXPECT_EQ(fields_of(fields[2].bytes).at(0).value, 1u) << "SessionLog.START";
}

TEST(EventFile, OfARunThatGoesOnIsTheLastOneBehindItsLastWholeRecord) {
  const TemporaryFolder folder;
  TestLog log;
  const Json line = Json::parse(R"({"kind":"train","iteration":40,"loss":0.5})", "");
  {
    EventFile file(folder.path(), 0, log.log());
    file.add(line, 1000);
  }
  const fs::path path = fs::directory_iterator(folder.path())->path();
  const auto whole = static_cast<int64_t>(fs::file_size(path));
  EXPECT_EQ(whole_event_bytes(path), whole);
  fs::resize_file(path, static_cast<uintmax_t>(whole - 3));
  EXPECT_LT(whole_event_bytes(path), whole - 3);
  for (int start = 0; start < 3; ++start) {
    EventFile file(folder.path(), 41, log.log());
    file.add(line, 1001);
  }
  const auto records = records_of(only_file(folder.path()));
  EXPECT_EQ(records.size(), 1 + 3 * 2u) << "the version, and a start and a line for each";
  EXPECT_EQ(scalars_in(records).size(), 3u);
  write_text(path, "not events");
  EXPECT_EQ(whole_event_bytes(path), 0);
  { EventFile file(folder.path(), 41, log.log()); }
  EXPECT_EQ(read_file(path), "not events");
}

TEST(EventFile, AFolderThatCannotBeWrittenIsAnError) {
  const Log log = Log::silent();
  EXPECT_NE(message_of(Kind::io, [&] { EventFile("/nowhere/at/all", 0, log); }).find("'/nowhere/at/all/events"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
