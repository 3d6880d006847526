#include "serve/infer_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "serve/gzip_body.h"

namespace hctr::serve {
namespace {

InferRequest read(const std::string& json, const std::string& tail = "") {
  const auto kept = std::make_shared<std::string>(tail);
  return read_infer_json(json, *kept, kept);
}

std::string refusal_of(const std::string& json, const std::string& tail = "") {
  try {
    (void)read(json, tail);
    return "";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.status().code, Code::invalid);
    return refusal.status().message;
  }
}

std::string one_input(const std::string& type, const std::string& shape, const std::string& data) {
  return R"({"inputs":[{"name":"x","shape":)" + shape + R"(,"datatype":")" + type + R"(","data":)" + data + "}]}";
}

template <class T>
std::vector<T> values_of(const NamedTensor& tensor) {
  expect_whole(tensor);
  std::vector<T> values;
  for (size_t i = 0; i < tensor.data.size() / sizeof(T); ++i) values.push_back(element<T>(tensor.data, i));
  return values;
}

TEST(InferJson, IntegersOf64BitsStayExact) {
  const InferRequest signed_ =
      read(one_input("INT64", "[3]", "[9007199254740993,-9223372036854775808,9223372036854775807]"));
  EXPECT_EQ(values_of<int64_t>(signed_.inputs[0]),
            (std::vector<int64_t>{9007199254740993, std::numeric_limits<int64_t>::min(),
                                  std::numeric_limits<int64_t>::max()}));
  const InferRequest large = read(one_input("UINT64", "[1]", "[18446744073709551615]"));
  EXPECT_EQ(values_of<uint64_t>(large.inputs[0]), std::vector<uint64_t>{~uint64_t{0}});
}

TEST(InferJson, FieldsMayComeInAnyOrderAndDataNested) {
  const InferRequest request =
      read(R"({"outputs":[{"name":"y","parameters":{"binary_data":true}}],"inputs":[{"data":[[1,2],[3,4.5]],)"
           R"("datatype":"FP32","name":"x","shape":[2,2]}],"id":"a","parameters":{"timeout":5,"more":{"deep":[1]}}})");
  EXPECT_EQ(values_of<float>(request.inputs[0]), (std::vector<float>{1, 2, 3, 4.5}));
  EXPECT_EQ(request.id, "a");
  EXPECT_EQ(std::get<int64_t>(request.parameters.at("timeout")), 5);
  EXPECT_EQ(request.outputs.at(0).name, "y");
}

TEST(InferJson, AValueThatIsNoneOfItsDatatypeIsRefused) {
  EXPECT_EQ(refusal_of(one_input("INT32", "[1]", "[2147483648]")),
            "element 0 is 2147483648, which is not a value of type INT32");
  EXPECT_EQ(refusal_of(one_input("UINT8", "[1]", "[-1]")), "element 0 is -1, which is not a value of type UINT8");
  EXPECT_EQ(refusal_of(one_input("INT64", "[1]", "[1.5]")), "element 0 is 1.5, which is not a value of type INT64");
  EXPECT_EQ(refusal_of(one_input("INT64", "[1]", "[18446744073709551616]")),
            "element 0 is 1.84467e+19, which is not a value of type INT64");
  EXPECT_EQ(refusal_of(one_input("BYTES", "[1]", "[7]")), "element 0 is 7, which is not a value of type BYTES");
  EXPECT_EQ(refusal_of(one_input("FP32", "[1]", "[\"7\"]")),
            "element 0 is the text '7', which is not a value of type FP32");
  EXPECT_EQ(refusal_of(one_input("FP16", "[1]", "[7]")),
            "values of type FP16 cannot be sent in JSON: send them as binary data");
  EXPECT_EQ(refusal_of(one_input("FP33", "[1]", "[7]")),
            "input 'x': 'FP33' is not a datatype; expected one such as FP32, INT64 or BYTES");
  EXPECT_EQ(refusal_of(one_input("FP32", "[1]", "[null]")),
            "input 'x': 'data' holds null, which is not allowed "
            "there");
  EXPECT_EQ(refusal_of(one_input("FP32", "[1]", "[{}]")),
            "input 'x': 'data' holds an object, which is not allowed there");
}

TEST(InferJson, ShapeAndDataMustAgree) {
  EXPECT_EQ(refusal_of(one_input("FP32", "[3]", "[1,2]")),
            "Unable to parse 'data': Shape does not match the elements of data for 'x': expecting 3 elements, found 2");
  EXPECT_EQ(refusal_of(one_input("FP32", "[-1]", "[]")), "input 'x' has shape [-1]: sizes must not be negative");
  EXPECT_NE(refusal_of(one_input("FP32", "[4611686018427387904,4611686018427387904]", "[]")), "");
  EXPECT_NE(refusal_of(one_input("FP32", "[1.5]", "[1]")), "");
  EXPECT_EQ(refusal_of("{}"), "the request has no 'inputs'");
  EXPECT_NE(refusal_of("[]"), "");
  EXPECT_NE(refusal_of(std::string(100000, '[')), "");
  EXPECT_NE(refusal_of(R"({"inputs":)" + std::string(100000, '[')), "");
}

TEST(InferJson, BinaryTensorsFollowInTheOrderOfInputs) {
  const std::string json =
      R"({"inputs":[{"name":"a","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}},)"
      R"({"name":"b","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":5}}]})";
  const InferRequest request = read(json, std::string("\x01\x02\x01\0\0\0z", 7));
  EXPECT_EQ(values_of<uint8_t>(request.inputs[0]), (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(texts_of(request.inputs[1]), (std::vector<std::string_view>{"z"}));
  EXPECT_EQ(refusal_of(json, "\x01\x02"), "unexpected size for input 'b', expecting 5 additional bytes of binary data");
  EXPECT_EQ(refusal_of(json, std::string(9, '\0')), "unexpected additional input data: 2 bytes belong to no input");
}

TEST(InferJson, TextsLongerThanTheirTensorAreRefused) {
  NamedTensor tensor{.name = "x", .type = Datatype::bytes, .shape = {1}};
  const std::string bytes("\xff\xff\xff\xff", 4);
  tensor.data = bytes;
  EXPECT_THROW(expect_whole(tensor), Refusal);
  const std::string two("\0\0\0\0\0\0\0\0", 8);
  tensor.data = two;
  EXPECT_THROW(expect_whole(tensor), Refusal) << "two texts, and the shape has one";
}

TEST(InferJson, ScoresAreWrittenSoThatTheyReadTheSame) {
  const std::vector<float> scores = {0.1f, 1e-30f, 0.33333334f};
  InferResponse response = response_to({.model = "m", .version = "1", .id = "q\"1"}, {});
  response.outputs.push_back({.name = "y",
                              .type = Datatype::f32,
                              .shape = {3, 1},
                              .data = {reinterpret_cast<const char*>(scores.data()), scores.size() * 4}});
  const InferAnswer answer = write_infer_json({.model = "m"}, response, {false});
  EXPECT_EQ(answer.body,
            R"({"id":"q\"1","model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"FP32",)"
            R"("shape":[3,1],"data":[0.1,1e-30,0.33333334]}]})");
  EXPECT_FALSE(answer.binary);
}

TEST(GzipBody, UnpacksWhatItPacksAndStopsAtTheLimit) {
  const std::string zeros(1 << 20, '0');
  const std::string packed = gzip_packed(zeros);
  EXPECT_LT(packed.size(), 20000u);
  EXPECT_EQ(unpacked(packed, 1 << 20), zeros);
  EXPECT_THROW(unpacked(packed, (1 << 20) - 1), Refusal);
  EXPECT_THROW(unpacked(packed.substr(0, packed.size() / 2), 1 << 20), Refusal);
  EXPECT_THROW(unpacked("no gzip", 1 << 20), Refusal);
}

}  // namespace
}  // namespace hctr::serve
