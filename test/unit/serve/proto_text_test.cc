#include "serve/proto_text.h"

#include <gtest/gtest.h>

#include "serve/model_config.h"
#include "support/message_of.h"

namespace hctr::serve {
namespace {

std::string json_of_text(const std::string& text) { return read_proto_text(text, "config.pbtxt").text(); }

TEST(ProtoText, FieldsOfEverySpellingBecomeJson) {
  EXPECT_EQ(json_of_text("name: \"a\" 'b' # a remark\nmax_batch_size: 0x10; octal: 010, minus: -3 half: 0.5f"),
            R"({"name":"ab","max_batch_size":16,"octal":8,"minus":-3,"half":0.5})");
  EXPECT_EQ(json_of_text("input [ { name: \"x\" dims: [ -1, 13 ] }, < name: 'y' dims: 1 dims: 2 > ]"),
            R"({"input":[{"name":"x","dims":[-1,13]},{"name":"y","dims":[1,2]}]})");
  EXPECT_EQ(json_of_text("group { kind: KIND_CPU } group: { count: 2 } on: true"),
            R"({"group":[{"kind":"KIND_CPU"},{"count":2}],"on":true})");
  EXPECT_EQ(json_of_text("text: \"\\n\\x41\\101\\\"\""), R"({"text":"\nAA\""})");
  EXPECT_EQ(json_of_text(""), "{}");
  EXPECT_EQ(json_of_text("versions: []"), R"({"versions":[]})");
}

TEST(ProtoText, AnErrorNamesTheLine) {
  const auto message = [](const std::string& text) {
    return test::message_of(Kind::config, [&] { json_of_text(text); });
  };
  EXPECT_EQ(message("a: 1\nb 2"), "config.pbtxt: line 2: expected ':' or '{' after 'b', found '2'");
  EXPECT_EQ(message("a {\n b: 1"), "config.pbtxt: line 2: expected the name of a field, found the end of the text");
  EXPECT_EQ(message("a: [1 2]"), "config.pbtxt: line 1: the list of 'a' has no ']'");
  EXPECT_EQ(message("a: \"x"), "config.pbtxt: line 1: a string has no closing quote");
  EXPECT_EQ(message("a: 9999999999999999999"),
            "config.pbtxt: line 1: the integer 9999999999999999999 is beyond 64 bits");
  EXPECT_EQ(message("a: 1x"), "config.pbtxt: line 1: '1x' is not a number");
  EXPECT_NE(message(std::string(200, '<')), "");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "a { ";
  EXPECT_EQ(message(deep), "config.pbtxt: line 1: messages are nested deeper than 50 levels");
}

ModelConfig config_of_text(const std::string& text) {
  return read_model_config(read_proto_text(text, "config.pbtxt"), "config.pbtxt", {});
}

TEST(ModelConfig, TakesWhatTritonsFilesSay) {
  const ModelConfig config = config_of_text(R"(
    name: "wdl" backend: "hugectr" max_batch_size: 64
    input [ { name: "DES" data_type: TYPE_FP32 dims: [ -1 ] } ]
    output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 }
    instance_group [ { count: 3 kind: KIND_CPU } ]
    version_policy { specific { versions: [ 1, 3 ] } }
    dynamic_batching { max_queue_delay_microseconds: 200 default_queue_policy { max_queue_size: 7 } }
    parameters { key: "slots" value { string_value: "26" } }
    optimization { graph { level: 1 } })");
  EXPECT_EQ(config.name, "wdl");
  EXPECT_EQ(config.max_batch_size, 64);
  EXPECT_EQ(config.inputs.at(0), (TensorDescription{"DES", Datatype::f32, {-1}}));
  EXPECT_EQ(config.instances, 3);
  EXPECT_EQ(config.versions, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(config.schedule.delay.count(), 200);
  EXPECT_EQ(config.schedule.most_queued, 7);
  EXPECT_EQ(config.parameters.at("slots"), "26");
  EXPECT_EQ(config.notes, (std::vector<std::string>{"config.pbtxt: 'optimization' has no effect"}));
}

TEST(ModelConfig, RefusesWhatItDoesNotKnow) {
  const auto message = [](const std::string& text) {
    return test::message_of(Kind::config, [&] { config_of_text(text); });
  };
  EXPECT_EQ(message("max_batchsize: 3"), "config.pbtxt has no field 'max_batchsize'; did you mean \"max_batch_size\"?");
  EXPECT_EQ(message("max_batch_size: -1"), "config.pbtxt: 'max_batch_size' is -1; expected 0 to 1073741824");
  EXPECT_EQ(message("max_batch_size: many"),
            "config.pbtxt: 'max_batch_size' must be an integer, not the string \"many\"");
  EXPECT_EQ(message("input { name: 'x' data_type: FP32 }"),
            "config.pbtxt: 'input' 0: 'data_type' is 'FP32'; expected one such as TYPE_FP32");
  EXPECT_EQ(message("ensemble_scheduling { }"),
            "config.pbtxt: 'ensemble_scheduling' is not supported by this "
            "server");
}

}  // namespace
}  // namespace hctr::serve
