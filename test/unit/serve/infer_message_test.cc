#include "serve/infer_message.h"

#include <gtest/gtest.h>

#include "serve/proto_json.h"
#include "serve/proto_reader.h"

namespace hctr::serve {
namespace {

std::string message(std::initializer_list<std::pair<int, std::string>> fields) {
  std::string bytes;
  for (const auto& [number, value] : fields) append_bytes_field(bytes, number, value);
  return bytes;
}

std::string shape_of(std::initializer_list<uint64_t> sizes) {
  std::string packed;
  for (const uint64_t size : sizes) append_varint(packed, size);
  return packed;
}

InferRequest read_message(const std::string& bytes) {
  const auto owner = std::make_shared<std::string>(bytes);
  return read_infer_message(*owner, owner);
}

std::string message_refusal(const std::string& bytes) {
  try {
    (void)read_message(bytes);
    return "";
  } catch (const Refusal& refusal) {
    return refusal.status().message;
  }
}

TEST(InferMessage, ContentsAndRawContentsAreTheSameInputs) {
  std::string contents;
  append_tag(contents, 3, WireType::varint);  // an unpacked value, followed by packed values
  append_varint(contents, 7);
  append_bytes_field(contents, 3, shape_of({static_cast<uint64_t>(-1), 300}));
  const std::string head = message({{1, "x"}, {2, "INT64"}, {3, shape_of({3})}});
  const InferRequest typed =
      read_message(message({{1, "m"}, {2, "4"}, {3, "id"}, {5, head + message({{5, contents}})}}));
  const std::vector<int64_t> values = {7, -1, 300};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), 24);
  EXPECT_EQ(typed.inputs.at(0).data, bytes);
  EXPECT_EQ(typed.model, "m");
  EXPECT_EQ(typed.version, "4");
  EXPECT_EQ(typed.id, "id");
  const InferRequest raw = read_message(message({{1, "m"}, {5, head}, {7, bytes}}));
  EXPECT_EQ(raw.inputs.at(0).data, bytes);
  EXPECT_EQ(raw.inputs[0].shape, std::vector<int64_t>{3});
  EXPECT_EQ(message_refusal(message({{1, "m"}, {5, head}, {7, bytes}, {7, bytes}})),
            "the request has 2 raw_input_contents for 1 inputs");
  EXPECT_EQ(message_refusal(message({{5, head + message({{5, contents}})}, {7, bytes}})),
            "input 'x' has contents, but the request has raw_input_contents; send only one of the two");
  const std::string other = message({{1, "x"}, {2, "FP32"}, {5, contents}});
  EXPECT_EQ(message_refusal(message({{5, other}})), "input 'x' has contents that do not match its datatype FP32");
}

/// A client finds the bytes of output i in raw_output_contents[i].
TEST(InferMessage, OutputsInSharedMemoryKeepTheirPlaceInRawContents) {
  InferRequest request;
  request.outputs = {{.name = "a", .parameters = {{"shared_memory_region", std::string("r")}}}, {.name = "b"}};
  InferResponse response{.model = "m", .version = "1"};
  response.outputs = {{.name = "a", .shape = {1}, .data = "1234"}, {.name = "b", .shape = {1}, .data = "5678"}};
  std::vector<std::string> names, raw;
  const std::string bytes = write_infer_message(request.outputs, response, {true, false});
  for (ProtoReader field(bytes); field.next();) {
    if (field.number() == 6) raw.emplace_back(field.bytes());
    if (field.number() != 5) continue;
    ProtoReader name(field.bytes());
    ASSERT_TRUE(name.next());
    names.push_back(name.text());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(raw, (std::vector<std::string>{"", "5678"}));
}

TEST(InferMessage, BytesThatAreNoMessageAreRefused) {
  EXPECT_EQ(message_refusal("\xff"), "the message ends inside a number");
  EXPECT_EQ(message_refusal(std::string("\x0a\x7f", 2)), "the message ends inside field 1");
  EXPECT_EQ(message_refusal("\x0b"), "the message has a field of wire type 3");
  EXPECT_EQ(message_refusal(std::string("\x08\x01", 2)),
            "field 1 of the message has wire type 0, which this field does not have");
  EXPECT_EQ(message_refusal(std::string(11, '\xff')), "the message ends inside a number");
}

TEST(InferMessage, SmallIntegersMustFitTheirDatatype) {
  const auto with = [](const std::string& type, int field, uint64_t value) {
    std::string contents;
    append_integer_field(contents, field, value);
    return message({{5, message({{1, "x"}, {2, type}, {3, shape_of({1})}, {5, contents}})}});
  };
  EXPECT_EQ(read_message(with("INT8", 2, static_cast<uint64_t>(-128))).inputs[0].data, "\x80");
  EXPECT_EQ(message_refusal(with("INT8", 2, 128)), "input 'x': 128 is not a value of type INT8");
  EXPECT_EQ(message_refusal(with("UINT16", 4, 65536)), "input 'x': 65536 is not a value of type UINT16");
}

TEST(ProtoOfJson, HasTheNumbersOfTheProtocol) {
  const Json json =
      Json::parse(R"({"config":{"name":"m","max_batch_size":64,"input":[{"name":"x","data_type":"TYPE_STRING",
      "dims":[-1]}],"parameters":{"a":{"string_value":"b"}},"backend":"huge_ctr"}})",
                  "test");
  const std::string bytes = proto_of_json("ModelConfigResponse", json);
  ProtoReader response(bytes);
  ASSERT_TRUE(response.next());
  EXPECT_EQ(response.number(), 1);
  std::vector<int> numbers;
  for (ProtoReader field(response.bytes()); field.next();) {
    numbers.push_back(field.number());
    if (field.number() == 4) {
      EXPECT_EQ(field.integer(), 64u);
    }
    if (field.number() != 5) continue;
    for (ProtoReader input(field.bytes()); input.next();) {
      if (input.number() == 2) {
        EXPECT_EQ(input.integer(), 13u) << "TYPE_STRING";
      }
      if (input.number() == 4) input.each(0, [](uint64_t size) { EXPECT_EQ(static_cast<int64_t>(size), -1); });
    }
  }
  EXPECT_EQ(numbers, (std::vector<int>{1, 4, 5, 14, 17}));
}

}  // namespace
}  // namespace hctr::serve
