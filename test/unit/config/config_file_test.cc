// Configs with includes, environment variables and changes from the command line.
#include "config/config_file.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "program/program_surroundings.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class ConfigFile : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) { write_text(folder_ / name, text); }
  std::string read(const std::string& name, const std::vector<std::string>& changes = {}) {
    return read_config_file(folder_ / name, changes, nullptr, environment_).text();
  }
  std::string refused(Kind kind, const std::string& name, const std::vector<std::string>& changes = {}) {
    return message_of(kind, [&] { read(name, changes); });
  }
  void expect_refused(Kind kind, const std::string& words, const std::string& name,
                      const std::vector<std::string>& changes = {}) {
    const std::string message = refused(kind, name, changes);
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> variables_;
  Environment environment_ = [this](const char* name) {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : std::optional(found->second);
  };
};

TEST_F(ConfigFile, IsReadAsItIsWithoutAnyOfThis) {
  const std::string text = R"({"solver":{"gpu":[0,1],"x":0.1},"layers":[{"top":"a"}]})";
  write("plain.json", text);
  EXPECT_EQ(read("plain.json"), text);
}

TEST_F(ConfigFile, IncludedFilesComeFirst) {
  write("solver.json", R"({"solver": {"batchsize": 64, "seed": 1, "gpu": [0, 1]}})");
  fs::create_directory(folder_ / "models");
  write("models/wide.json", R"({"include": "../solver.json", "layers": [{"top": "a"}], "solver": {"seed": 2}})");
  write("run.json", R"({"include": ["models/wide.json"], "solver": {"gpu": [3], "display": 5}})");
  EXPECT_EQ(read("run.json"), R"({"solver":{"batchsize":64,"seed":2,"gpu":[3],"display":5},"layers":[{"top":"a"}]})");
  write("less.json", R"({"include": "solver.json", "solver": {"gpu": null, "seed": 3}})");
  EXPECT_EQ(read("less.json"), R"({"solver":{"batchsize":64,"seed":3}})");
  // A field with the value null is removed. This also holds for a field, or within an object, that no other file has.
  write("none.json", R"({"include": "solver.json", "a": null, "b": {"c": null, "d": {"e": null}}, "f": [null],
                         "solver": {"gpu": {"g": null}, "h": null}})");
  EXPECT_EQ(read("none.json"), R"({"solver":{"batchsize":64,"seed":1,"gpu":{}},"b":{"d":{}},"f":[null]})");
  // Later files override earlier ones.
  write("both.json", R"({"include": ["models/wide.json", "solver.json"]})");
  EXPECT_EQ(read("both.json"), R"({"solver":{"batchsize":64,"seed":1,"gpu":[0,1]},"layers":[{"top":"a"}]})");
}

TEST_F(ConfigFile, AllFilesThatItIsMadeOfAreKnown) {
  write("base.json", "{}");
  fs::create_directory(folder_ / "models");
  write("models/wide.json", R"({"include": "../base.json"})");
  write("run.json", R"({"include": ["models/wide.json"]})");
  EXPECT_EQ(
      files_of_config(folder_ / "run.json"),
      (std::vector<fs::path>{folder_ / "run.json", folder_ / "models/wide.json", folder_ / "models/../base.json"}));
  EXPECT_EQ(files_of_config(folder_ / "none.json"), std::vector<fs::path>{folder_ / "none.json"});
}

TEST_F(ConfigFile, IncludesThatCannotBeReadAreNamed) {
  write("a.json", R"({"include": "b.json"})");
  expect_refused(Kind::io, "b.json", "a.json");
  write("b.json", R"({"include": "a.json"})");
  expect_refused(Kind::config, "do two files include each other?", "a.json");
  write("c.json", R"({"include": {"file": "a.json"}})");
  expect_refused(Kind::config, "/include: expected the path of a config", "c.json");
  write("broken.json", R"({"solver": )");
  write("d.json", R"({"include": "broken.json"})");
  expect_refused(Kind::config, "broken.json: line 1", "d.json");
}

TEST_F(ConfigFile, StringsTakeVariablesOfTheEnvironment) {
  variables_ = {{"HCTR_TEST_FOLDER", "/data/\"day 1\""}, {"HCTR_TEST_EMPTY", ""}};
  write("run.json", R"({"a": "${HCTR_TEST_FOLDER}/x${HCTR_TEST_EMPTY}", "b": ["${HCTR_TEST_MISSING:-none}"],
                       "c": "${HCTR_TEST_EMPTY:-none}", "d": "$${HCTR_TEST_FOLDER} $5 {x}"})");
  const Json config = read_config_file(folder_ / "run.json", {}, nullptr, environment_);
  EXPECT_EQ(*config.find("a")->string(), "/data/\"day 1\"/x");  // quotes in the variable stay part of the text
  EXPECT_EQ(*(*config.find("b")->array())[0].string(), "none");
  EXPECT_EQ(*config.find("c")->string(), "none");
  EXPECT_EQ(*config.find("d")->string(), "${HCTR_TEST_FOLDER} $5 {x}");
  write("missing.json", R"({"layers": [{"source": "${HCTR_TEST_MISSING}/x"}]})");
  expect_refused(Kind::config, "missing.json: /layers/0/source: the environment has no variable \"HCTR_TEST_MISSING\"",
                 "missing.json");
  write("open.json", R"({"a": "${HOME"})");
  expect_refused(Kind::config, "\"${\" without \"}\"", "open.json");
  write("nested.json", R"({"a": "${HCTR_TEST_MISSING:-${HCTR_TEST_FOLDER}}"})");
  expect_refused(Kind::config,
                 "/a: a default must be plain text, but "
                 "\"${HCTR_TEST_MISSING:-${HCTR_TEST_FOLDER}}\" contains a variable",
                 "nested.json");
}

TEST_F(ConfigFile, TakesNoVariableOfTheProcessByItself) {
  write("run.json", R"({"a": "${PATH:-none}"})");
  EXPECT_EQ(read_config_file(folder_ / "run.json").text(), R"({"a":"none"})");
  EXPECT_NE(read_config_file(folder_ / "run.json", {}, nullptr, system_environment()).text(), R"({"a":"none"})");
}

TEST_F(ConfigFile, EscapedVariablesAreReadAsTheyWere) {
  Json config(Json::Object{{"n", 3}, {"none", Json()}});
  for (const char* text : {"${d}", "$${d}", "$$${d}", "a${b}${c", "$5 $ {x}", "${${", ""}) config.set(text, text);
  config.set("list", Json::Array{Json::Object{{"path", "${d}/x"}}, "${e}"});
  write("run.json", with_escaped_variables(config).text());
  EXPECT_EQ(read("run.json"), config.text());
}

TEST_F(ConfigFile, TextsOfDataHaveNoVariables) {
  variables_ = {{"HCTR_TEST_FOLDER", "secret"}};
  const std::string name = "${HCTR_TEST_FOLDER}", open = "${HCTR";
  const Json::Array names = {name, open};
  const Json config(Json::Object{
      {"layers",
       Json::Array{Json::Object{
           {"csv", Json::Object{{"labels", Json::Array{name, Json::Object{{"column", name}, {"positive", names}}}},
                                {"dense", Json::Array{Json::Object{{"columns", names}}}},
                                {"columns", names},
                                {"missing", name}}},
           {"sample_weight", Json::Object{{"column", open}}}}}}});
  write("raw.json", config.text());
  EXPECT_EQ(read("raw.json"), config.text());
  write("escaped.json", with_escaped_variables(config).text());
  EXPECT_EQ(read("escaped.json"), config.text());
  write("other.json", R"({"columns": {"file": "${HCTR_TEST_FOLDER}"}, "1": "${HCTR_TEST_FOLDER}"})");
  EXPECT_EQ(read("other.json"), R"({"columns":{"file":"secret"},"1":"secret"})");
}

TEST_F(ConfigFile, ChangesSetFieldsByTheirPath) {
  write("run.json", R"({"solver": {"batchsize": 64, "seed": 1},
                       "layers": [{"type": "Data", "source": "a"}, {"type": "ReLU", "top": ["r"]},
                                  {"type": "ReLU", "name": "second", "top": "s", "p": {"x": 1}}]})");
  const auto changed = [&](const std::vector<std::string>& changes) {
    return read_config_file(folder_ / "run.json", changes);
  };
  EXPECT_EQ(changed({"solver.batchsize=1024"}).find("solver")->text(), R"({"batchsize":1024,"seed":1})");
  EXPECT_EQ(changed({"solver.seed=2", "solver.seed=3"}).find("solver")->text(), R"({"batchsize":64,"seed":3})");
  EXPECT_EQ(changed({"solver.seed=null"}).find("solver")->text(), R"({"batchsize":64})");
  EXPECT_EQ(changed({"solver.checkpoint.every=5"}).find("solver")->text(),
            R"({"batchsize":64,"seed":1,"checkpoint":{"every":5}})");
  EXPECT_EQ(changed({R"(solver.gpu=[0, 1])"}).find("solver")->find("gpu")->text(), "[0,1]");
  const auto layer = [&](const std::string& change, size_t n) {
    return (*changed({change}).find("layers")->array())[n].text();
  };
  EXPECT_EQ(layer("layers.Data.source=my file, a=b.txt", 0), R"({"type":"Data","source":"my file, a=b.txt"})");
  EXPECT_EQ(layer("layers.0.source=\"7\"", 0), R"({"type":"Data","source":"7"})");
  EXPECT_EQ(layer("layers.r.y=true", 1), R"({"type":"ReLU","top":["r"],"y":true})");
  EXPECT_EQ(layer("layers.second.p.x=2", 2), R"({"type":"ReLU","name":"second","top":"s","p":{"x":2}})");
}

TEST_F(ConfigFile, ChangesThatFitNothingAreNamed) {
  write("run.json", R"({"solver": {"batchsize": 64}, "layers": [{"type": "ReLU", "top": "relu1"}, {"type": "ReLU"}]})");
  const auto expect_change_refused = [&](const std::string& change, const std::string& words) {
    expect_refused(Kind::usage, words, "run.json", {change});
  };
  expect_change_refused("solver.batchsize", "expected FIELD=VALUE");
  expect_change_refused("=3", "expected FIELD=VALUE");
  expect_change_refused("solver..x=3", "a name in the path is empty");
  expect_change_refused("solver.batchsize.x=3", "solver.batchsize is the integer 64 and has no field \"x\"");
  expect_change_refused("layers.5.x=3", "an array of 2, numbered from 0: no element has number 5");
  expect_change_refused("layers.relu2.x=3", "did you mean \"relu1\"?");
  expect_change_refused("layers.ReLU.x=3", "2 elements of layers are called \"ReLU\"");
}

}  // namespace
}  // namespace hctr::test
