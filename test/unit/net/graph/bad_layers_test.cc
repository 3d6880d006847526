// Every layer of the catalog with every mistake that its schema can detect. Each mistake is an error with the pointer
// of the field and a valid value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "formats/catalog/data_schema.h"
#include "net/graph/graph.h"
#include "net/layers/layer_catalog.h"
#include "unit/config/sections/edit_json.h"
#include "unit/config/sections/spoil_fields.h"
#include "unit/net/graph/layer_examples.h"

namespace hctr::test {
namespace {

using Dims = std::vector<int64_t>;

Dims dims_of(const std::string& letters) {
  Dims dims;
  for (const char letter : letters.substr(0, letters.find('|')))
    if (letter != ' ') dims.push_back(size_of_letter(letter));
  return dims;
}

std::string text_of(const Dims& dims) {
  std::string text;
  for (const int64_t dim : dims) text += cat(text.empty() ? "[" : ",", dim);
  return text + "]";
}

/// A config with layers that produce tensors of these shapes, followed by the tested section.
class Bench {
 public:
  explicit Bench(const std::vector<Dims>& inputs) {
    Json::Array sparse;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = cat("in", i);
      names_.push_back(name);
      add_source(name, inputs[i], sparse);
    }
    Json data = Json::parse(
        R"({"type": "Data", "source": "list.txt", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 3}})",
        "data");
    data.set("sparse", sparse);
    layers_.insert(layers_.begin(), data);
    pointer_ = cat("/layers/", layers_.size());
  }

  const std::string& pointer() const { return pointer_; }
  const std::vector<std::string>& names() const { return names_; }

  Json config(const Json& section) const {
    Json config = Json::parse(
        R"({"solver": {"batchsize": 8, "max_iter": 1}, "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}}})",
        "config");
    Json::Array all = layers_;
    all.push_back(section);
    return config.set("layers", all);
  }

 private:
  void add(const std::string& section) { layers_.push_back(Json::parse(section, "source")); }

  void add_source(const std::string& name, Dims dims, Json::Array& sparse) {
    const bool whole = dims[0] == 8 || dims.size() == 1;
    const std::string made = whole ? name : name + "_rows";
    if (dims.size() == 1) {
      add(cat(R"({"type": "InnerProduct", "bottom": "dense", "top": ")", name,
              R"(_z", "fc_param": {"num_output": 1}})"));
      add(cat(R"({"type": "BinaryCrossEntropyLoss", "bottom": [")", name, R"(_z", "label"], "top": ")", name, "\"}"));
    } else if (dims.size() == 2) {
      add(cat(R"({"type": "InnerProduct", "bottom": "dense", "top": ")", made, R"(", "fc_param": {"num_output": )",
              dims[1], "}}"));
    } else if (dims.size() == 3) {
      sparse.push_back(Json::parse(cat(R"({"top": "keys_)", name, R"(", "slot_num": )", dims[1],
                                       R"(, "max_feature_num_per_sample": )", dims[1], "}"),
                                   "sparse"));
      add(cat(R"({"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys_)", name, R"(", "top": ")", made,
              R"(", "sparse_embedding_hparam": {"combiner": 0, "embedding_vec_size": )", dims[2], "}}"));
    } else {
      add(cat(R"({"type": "InnerProduct", "bottom": "dense", "top": ")", name,
              R"(_length", "fc_param": {"num_output": 1}})"));
      add(cat(R"({"type": "SequenceMask", "bottom": ")", name, R"(_length", "top": ")", made,
              R"(", "max_sequence_len_from": )", dims[2], R"(, "max_sequence_len_to": )", dims[3], "}"));
    }
    if (whole) return;
    std::string indices;
    for (int64_t r = 0; r < dims[0]; ++r) indices += cat(r > 0 ? ", " : "", r % 8);
    add(cat(R"({"type": "Gather", "bottom": ")", made, R"(", "top": ")", name, R"(", "indices": [)", indices, "]}"));
  }

  Json::Array layers_;
  std::vector<std::string> names_;
  std::string pointer_;
};

Json names_as_json(const std::vector<std::string>& names) {
  Json::Array array;
  for (const std::string& name : names) array.emplace_back(name);
  return array;
}

Json section_of(const LayerExample& example, const std::string& fields, const std::vector<std::string>& bottoms,
                int tops) {
  Json section = Json::parse(cat("{", fields, "}"), example.type);
  section.set("type", example.type).set("bottom", names_as_json(bottoms));
  Json::Array array;
  for (int t = 0; t < tops; ++t) array.emplace_back(cat("out", t));
  return section.set("top", array);
}

/// The errors of a config, except errors about the missing loss.
std::vector<Problems::Entry> errors_of(const Json& config) {
  Problems problems;
  const Config read = read_config(config, problems);
  if (!problems.any_error()) wire(read, 8, problems);
  std::vector<Problems::Entry> errors = problems.errors();
  std::erase_if(errors, [](const Problems::Entry& e) { return e.message.starts_with("the config has no loss"); });
  return errors;
}

/// Expects an error at pointer `place`, or at a member of it, that contains `words`. If an empty object replaced the
/// value, an error about a missing field is accepted, too.
void expect_error(const Json& config, const std::string& place, const std::string& words) {
  const auto errors = errors_of(config);
  const auto says = [](const std::string& message, const std::string& what) {
    return message.find(what) != std::string::npos;
  };
  for (const auto& error : errors)
    if (error.pointer.starts_with(place) &&
        (says(error.message, words) || (words == "expected " && says(error.message, "needs \""))))
      return;
  ADD_FAILURE() << "no \"" << words << "\" at " << place << " in" << listed(errors) << "\nof\n" << config.text();
}

class BadLayers : public testing::TestWithParam<LayerExample> {
 protected:
  const LayerExample& example() const { return GetParam(); }
  const LayerType& type() const { return *find_layer_type(example().type); }
  std::vector<Dims> shapes() const {
    std::vector<Dims> shapes;
    for (const std::string& input : example().inputs) shapes.push_back(dims_of(input));
    return shapes;
  }
  /// Expects an error that is about one of these input tensors and contains `shown`.
  void expect_misfit(const std::vector<Dims>& inputs, const std::string& shown) const {
    const Bench bench(inputs);
    const Json config = bench.config(section_of(example(), example().fields, bench.names(), example().tops));
    expect_error(config, bench.pointer() + "/", shown);
  }
};

TEST(LayerExamples, ThereIsOneOfEveryType) {
  std::map<std::string, int> count;
  for (const LayerExample& example : layer_examples()) ++count[example.type];
  for (const LayerType& type : layer_catalog())
    EXPECT_EQ(count[type.name()], 1) << "rows for " << type.name() << " in layer_examples.h";
  EXPECT_EQ(count.size(), layer_catalog().size());
}

TEST_P(BadLayers, TheExampleIsRight) {
  const Bench bench(shapes());
  EXPECT_EQ(listed(errors_of(bench.config(section_of(example(), example().fields, bench.names(), example().tops)))),
            "");
}

TEST_P(BadLayers, TooFewOrTooManyTensors) {
  const auto around = [](const Arity& arity) {
    std::vector<int> wrong;
    for (int n = 1; n < arity.least; ++n) wrong.push_back(n);
    if (arity.most != kAnyNumber) wrong.insert(wrong.end(), {arity.most + 1, arity.most + 2});
    return wrong;
  };
  const auto takes = [&](const Arity& arity) { return cat(type().name(), " takes ", arity.text()); };
  for (const int n : around(type().inputs())) {
    const Bench bench(std::vector<Dims>(static_cast<size_t>(n), shapes()[0]));
    expect_error(bench.config(section_of(example(), example().fields, bench.names(), example().tops)),
                 bench.pointer() + "/bottom", takes(type().inputs()));
  }
  const Bench bench(shapes());
  for (const int n : around(type().outputs()))
    expect_error(bench.config(section_of(example(), example().fields, bench.names(), n)), bench.pointer() + "/top",
                 takes(type().outputs()));
  for (int n = type().outputs().least; n <= std::min(type().outputs().most, 4); ++n)
    if (n != example().tops)
      expect_error(bench.config(section_of(example(), example().fields, bench.names(), n)), bench.pointer() + "/top",
                   "named");
}

TEST_P(BadLayers, NamesThatAreNone) {
  const Bench bench(shapes());
  const Json right = section_of(example(), example().fields, bench.names(), example().tops);
  for (const std::string key : {"bottom", "top"}) {
    const std::string place = "/" + key;
    const auto with = [&](const Json& value) { return bench.config(edited(right, place, value)); };
    expect_error(bench.config(without(right, place)), bench.pointer(), cat("needs \"", key, "\""));
    for (const Json& value : {Json(5), Json(), Json(Json::Object{}), Json(true)})
      expect_error(with(value), bench.pointer() + place, "expected a string or an array of strings");
    expect_error(with(Json(Json::Array{})), bench.pointer() + place, "at least one");
    expect_error(with(Json(Json::Array{Json(3)})), bench.pointer() + place + "/0",
                 "expected a string, found the integer 3");
    expect_error(with(""), bench.pointer() + place, "empty");
    const std::string cut = key.substr(0, key.size() - 1);
    expect_error(bench.config(edited(without(right, place), "/" + cut, *right.find(key))), bench.pointer() + "/" + cut,
                 cat("did you mean \"", key, "\"?"));
  }
  std::vector<std::string> names = bench.names();
  names.back() = "int0";
  expect_error(bench.config(section_of(example(), example().fields, names, example().tops)),
               bench.pointer() + "/bottom", "did you mean \"in0\"?");
}

TEST_P(BadLayers, TensorsOfAnotherRank) {
  const std::vector<Dims> of_rank = {{}, {1}, {8, 6}, {8, 3, 4}, {8, 1, 5, 7}};
  for (size_t i = 0; i < example().inputs.size(); ++i) {
    const std::string& input = example().inputs[i];
    for (size_t rank = 1; rank < of_rank.size(); ++rank) {
      const bool fine = input.find('|') != std::string::npos &&
                        input.find(static_cast<char>('0' + rank), input.find('|')) != std::string::npos;
      std::vector<Dims> changed = shapes();
      if (fine || rank == changed[i].size()) continue;
      changed[i] = of_rank[rank];
      SCOPED_TRACE(cat("input ", i, " of shape ", text_of(changed[i])));
      expect_misfit(changed, text_of(changed[i]));
    }
  }
}

TEST_P(BadLayers, TensorsThatDoNotFitEachOther) {
  std::string all;
  for (const std::string& input : example().inputs) all += input.substr(0, input.find('|'));
  for (size_t i = 0; i < example().inputs.size(); ++i) {
    const std::string letters = example().inputs[i].substr(0, example().inputs[i].find('|'));
    for (size_t d = 0; 2 * d < letters.size(); ++d) {
      const char letter = letters[2 * d];
      const bool bound = (letter >= '0' && letter <= '9') || std::count(all.begin(), all.end(), letter) > 1;
      std::vector<Dims> changed = shapes();
      if (!bound || (changed[i].size() == 4 && d == 1)) continue;  // the second dimension of a mask is always 1
      changed[i][d] = d == 0 ? 4 : changed[i][d] + 1;
      SCOPED_TRACE(cat("input ", i, " of shape ", text_of(changed[i])));
      expect_misfit(changed, cat(changed[i][d]));
    }
  }
}

TEST_P(BadLayers, FieldsThatDoNotFitTheTensors) {
  const Bench bench(shapes());
  for (const LayerExample::Misfit& misfit : example().misfits) {
    SCOPED_TRACE(misfit.fields);
    expect_error(bench.config(section_of(example(), misfit.fields, bench.names(), example().tops)),
                 bench.pointer() + "/" + misfit.path, "");
  }
}

/// Sanitizers run one of five cases, because fields of the same kind run the same code.
constexpr size_t kEach = kSanitized ? 5 : 1;

TEST_P(BadLayers, EveryFieldSpoilt) {
  const Bench bench(shapes());
  const Json right = section_of(example(), example().fields, bench.names(), example().tops);
  const std::string object = type().nested().empty() ? "" : "/" + type().nested();
  std::vector<SpoiltField> all = spoilt_fields(right, object, type().fields(), true);
  if (!object.empty())
    for (const SpoiltField& spoilt : spoilt_object(right, object)) all.push_back(spoilt);
  for (size_t i = 0; i < all.size(); i += kEach) {
    const SpoiltField& spoilt = all[i];
    SCOPED_TRACE(spoilt.how);
    const Json config = bench.config(spoilt.section);
    if (spoilt.place)
      expect_error(config, bench.pointer() + *spoilt.place, spoilt.words);
    else
      errors_of(config);  // the call must return; its result does not matter
  }
}

/// Runs the same checks for sections that are not layers.
TEST(BadSections, EveryFieldSpoilt) {
  const Json config = Json::parse(R"({
    "solver": {"batchsize": 8, "max_iter": 1, "eval_metrics": ["GroupedAUC"], "group_by": {"input": "keys", "slot": 0},
               "pretrained": [{"table": "vectors", "keys": "k.npy", "vectors": "v.npy"}]},
    "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 1, "beta1": 0.9, "beta2": 0.9, "epsilon": 1e-8}},
    "layers": [
      {"type": "Data", "format": "Csv", "source": "list.txt", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 3},
       "csv": {"labels": ["l"], "dense": [{"columns": ["a", "b", "c"]}], "slots": [{"columns": ["x", "y"]}]},
       "parquet": {"labels": ["l"], "dense": [{"columns": ["a", "b", "c"]}], "slots": [{"columns": ["x", "y"]}]},
       "sparse": [{"top": "keys", "slot_num": 2, "max_feature_num_per_sample": 2}]},
      {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "vectors", "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": 0}},
      {"type": "Reshape", "bottom": "vectors", "top": "flat"},
      {"type": "InnerProduct", "bottom": "flat", "top": "z", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["z", "label"], "top": "loss"}]})",
                                  "config");
  ASSERT_EQ(listed(errors_of(config)), "");
  std::vector<FieldDoc> of_adam = optimizer_schema().fields();  // constants of other optimizers are ignored
  std::erase_if(of_adam,
                [](const FieldDoc& field) { return field.name.ends_with("_hparam") && field.name != "adam_hparam"; });
  const std::pair<std::string, std::vector<FieldDoc>> sections[] = {
      {"/solver", solver_schema().fields()},
      {"/optimizer", of_adam},
      {"/layers/0", data_schema().fields()},
      {"/layers/1", embedding_schema("DistributedSlotSparseEmbeddingHash").fields()}};
  for (const auto& [pointer, fields] : sections) {
    const std::vector<SpoiltField> all = spoilt_fields(config, pointer, fields, false);
    for (size_t i = 0; i < all.size(); i += kEach) {
      const SpoiltField& spoilt = all[i];
      SCOPED_TRACE(spoilt.how);
      if (spoilt.place)
        expect_error(spoilt.section, *spoilt.place, spoilt.words);
      else
        errors_of(spoilt.section);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog, BadLayers, testing::ValuesIn(layer_examples()),
                         [](const auto& of) { return of.param.type; });

}  // namespace
}  // namespace hctr::test
