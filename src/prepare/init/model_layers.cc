#include "prepare/init/model_layers.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr int64_t kVector = 16;           // elements of an embedding vector
constexpr int64_t kItemVector = 32;       // size of an item's vector, in din
constexpr int64_t kWidths[] = {128, 64};  // widths of the hidden layers
constexpr double kDropout = 0.3;
constexpr int64_t kCrossLayers = 3;
constexpr int64_t kRareBelow = 5;  // if rare keys get no row, a key needs this number of occurrences to get a row

using Object = Json::Object;

/// The name, or an array if there are several names.
Json names_of(const std::vector<std::string>& names) {
  if (names.size() == 1) return Json(names[0]);
  Json array(Json::Array{});
  for (const std::string& name : names) array.add(name);
  return array;
}

/// Builds a sequence of layers. Each method returns the name of its top.
class Layers {
 public:
  explicit Layers(const ModelInputs& inputs) : inputs_(inputs) {}

  Json& add_with_tops(const char* type, const std::vector<std::string>& bottom, const std::vector<std::string>& top) {
    return layers_.emplace_back(Object{{"type", type}, {"bottom", names_of(bottom)}, {"top", names_of(top)}});
  }
  Json& add(const char* type, const std::vector<std::string>& bottom, const std::string& top) {
    return add_with_tops(type, bottom, {top});
  }
  void embedding(const std::string& keys, const std::vector<std::string>& top, int64_t width, const char* combiner) {
    Json table(Object{{"embedding_vec_size", width}, {"combiner", combiner}});
    if (inputs_.rare_keys) table.set("min_count", kRareBelow);
    add_with_tops("DistributedSlotSparseEmbeddingHash", {keys}, top).set("sparse_embedding_hparam", std::move(table));
  }
  Json& reshape(const std::string& bottom, const std::string& top, int64_t width) {
    return add("Reshape", {bottom}, top).set("leading_dim", width);
  }
  void slice(const std::string& bottom, const std::vector<std::string>& tops, const std::vector<int64_t>& ends) {
    Json ranges(Json::Array{});
    for (size_t i = 0; i < tops.size(); ++i)
      ranges.add(Json(Json::Array{Json(i == 0 ? int64_t{0} : ends[i - 1]), Json(ends[i])}));
    add_with_tops("Slice", {bottom}, tops).set("ranges", std::move(ranges));
  }
  std::string fully_connected(const std::string& bottom, const std::string& top, int64_t width) {
    add("InnerProduct", {bottom}, top).set("fc_param", Json(Object{{"num_output", width}}));
    return top;
  }
  std::string concat(const std::vector<std::string>& parts, const std::string& top) {
    if (parts.size() == 1) return parts[0];
    add("Concat", parts, top);
    return top;
  }
  std::string sum(const std::vector<std::string>& parts, const std::string& top) {
    if (parts.size() == 1) return parts[0];
    add("Add", parts, top);
    return top;
  }
  std::string sum_of_columns(const std::string& bottom, const std::string& top) {
    add("ReduceSum", {bottom}, top).set("axis", 1);
    return top;
  }
  /// Adds hidden layers with ReLU and dropout.
  std::string hidden(std::string bottom) {
    for (size_t i = 0; i < std::size(kWidths); ++i) {
      const std::string number = std::to_string(i + 1);
      bottom = fully_connected(bottom, "fc" + number, kWidths[i]);
      add("ReLU", {bottom}, "relu" + number);
      add("Dropout", {"relu" + number}, "dropout" + number).set("rate", kDropout);
      bottom = "dropout" + number;
    }
    return bottom;
  }
  /// Adds the embedding vectors, "vectors" [slots * kVector], and the linear weights, "weights" [slots], of all slots.
  /// Both come from one table with rows of kVector + 1 elements.
  void vectors_and_weights() {
    embedding("keys", {"embedding"}, kVector + 1, "mean");
    reshape("embedding", "rows", kVector + 1);
    slice("rows", {"row_vectors", "row_weights"}, {kVector, kVector + 1});
    reshape("row_vectors", "vectors", inputs_.slots * kVector);
    reshape("row_weights", "weights", inputs_.slots);
  }
  /// Adds the concatenated vectors of all slots.
  void vectors() {
    embedding("keys", {"embedding"}, kVector, "mean");
    reshape("embedding", "vectors", inputs_.slots * kVector);
  }
  Json::Array loss(const std::string& logits) {
    add("BinaryCrossEntropyLoss", {logits, "label"}, "loss");
    return std::move(layers_);
  }

 private:
  const ModelInputs& inputs_;
  Json::Array layers_;
};

/// The names of the slots' vectors and, if there are any, of the dense values.
std::vector<std::string> features(const ModelInputs& inputs) {
  std::vector<std::string> names;
  if (inputs.slots > 0) names.emplace_back("vectors");
  if (inputs.dense > 0) names.emplace_back("dense");
  return names;
}

/// H.-T. Cheng et al., "Wide & Deep Learning for Recommender Systems", DLRS 2016.
Json::Array wide_deep(const ModelInputs& inputs) {
  Layers layers(inputs);
  if (inputs.slots > 0) layers.vectors_and_weights();
  const std::string hidden = layers.hidden(layers.concat(features(inputs), "features"));
  std::vector<std::string> parts = {layers.fully_connected(hidden, "deep", 1)};
  if (inputs.slots > 0) parts.push_back(layers.sum_of_columns("weights", "wide"));
  if (inputs.dense > 0) parts.push_back(layers.fully_connected("dense", "linear", 1));
  return layers.loss(layers.sum(parts, "logits"));
}

/// H. Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction", IJCAI 2017.
Json::Array deepfm(const ModelInputs& inputs) {
  Layers layers(inputs);
  std::vector<std::string> vectors, weights;
  if (inputs.slots > 0) {
    layers.vectors_and_weights();
    vectors.emplace_back("vectors");
    weights.emplace_back("weights");
  }
  if (inputs.dense > 0) {
    const auto weighted = [&](const char* top, int64_t width) {
      layers.add("WeightMultiply", {"dense"}, top)
          .set("weight_dims", Json(Json::Array{Json(inputs.dense), Json(width)}));
    };
    weighted("dense_vectors", kVector);
    weighted("dense_weights", 1);
    vectors.emplace_back("dense_vectors");
    weights.emplace_back("dense_weights");
  }
  const std::string all = layers.concat(vectors, "all_vectors");
  layers.add("FmOrder2", {all}, "fm").set("out_dim", kVector);
  std::vector<std::string> parts = {layers.sum_of_columns("fm", "second_order"),
                                    layers.sum_of_columns(layers.concat(weights, "all_weights"), "first_order")};
  parts.push_back(layers.fully_connected(layers.hidden(all), "deep", 1));
  return layers.loss(layers.sum(parts, "logits"));
}

/// R. Wang et al., "Deep & Cross Network for Ad Click Predictions", ADKDD 2017.
Json::Array dcn(const ModelInputs& inputs) {
  Layers layers(inputs);
  if (inputs.slots > 0) layers.vectors();
  const std::string all = layers.concat(features(inputs), "features");
  layers.add("MultiCross", {all}, "cross").set("mc_param", Json(Object{{"num_layers", kCrossLayers}}));
  const std::string both = layers.concat({"cross", layers.hidden(all)}, "both");
  return layers.loss(layers.fully_connected(both, "logits", 1));
}

/// M. Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019.
Json::Array dlrm(const ModelInputs& inputs) {
  Layers layers(inputs);
  layers.embedding("keys", {"embedding"}, kVector, "mean");
  layers.fully_connected("dense", "bottom_fc1", 4 * kVector);
  layers.add("ReLU", {"bottom_fc1"}, "bottom_relu1");
  layers.fully_connected("bottom_relu1", "bottom_fc2", kVector);
  layers.add("ReLU", {"bottom_fc2"}, "bottom");
  layers.add("Interaction", {"bottom", "embedding"}, "interaction");
  return layers.loss(layers.fully_connected(layers.hidden("interaction"), "logits", 1));
}

/// G. Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018. The history's vectors are
/// weighted by their relevance to the item, and concatenated with the vectors of other columns.
Json::Array din(const ModelInputs& inputs) {
  Layers layers(inputs);
  const int64_t length = inputs.history, width = kItemVector;
  layers.embedding("items", {"item_vectors", "lengths"}, width, "none");
  layers.add_with_tops("FusedReshapeConcat", {"item_vectors"}, {"history", "item"});
  layers.add("Scale", {"item"}, "items_repeated").set("scale_param", Json(Object{{"axis", 1}, {"factor", length}}));
  layers.add("Sub", {"items_repeated", "history"}, "difference");
  layers.add("ElementwiseMultiply", {"items_repeated", "history"}, "product");
  layers.add("Concat", {"items_repeated", "history", "difference", "product"}, "pairs");
  layers.fully_connected("pairs", "attention_fc1", 36);
  layers.add("ReLU", {"attention_fc1"}, "attention_relu1");
  layers.fully_connected("attention_relu1", "attention_fc2", 1);
  layers.reshape("attention_fc2", "scores", length).set("time_step", 1);
  layers.slice("lengths", {"length"}, {1});
  layers.add("SequenceMask", {"length"}, "mask").set("max_sequence_len_from", 1).set("max_sequence_len_to", length);
  layers.add("Softmax", {"scores", "mask"}, "attention");
  layers.reshape("history", "sequence", width).set("time_step", length);
  layers.add("MatrixMultiply", {"attention", "sequence"}, "weighted");
  layers.reshape("weighted", "interest", width);
  layers.add("ElementwiseMultiply", {"interest", "item"}, "cross");
  if (inputs.slots > 0) layers.vectors();
  std::vector<std::string> all = {"interest", "item", "cross"};
  for (const std::string& name : features(inputs)) all.push_back(name);
  return layers.loss(layers.fully_connected(layers.hidden(layers.concat(all, "features")), "logits", 1));
}

}  // namespace

Json::Array model_layers(InitModel model, const ModelInputs& inputs) {
  switch (model) {
    case InitModel::wide_deep:
      return wide_deep(inputs);
    case InitModel::deepfm:
      return deepfm(inputs);
    case InitModel::dcn:
      return dcn(inputs);
    case InitModel::dlrm:
      return dlrm(inputs);
    case InitModel::din:
      return din(inputs);
  }
  throw Error(Kind::bug, "a model without layers");
}

const char* name_of(InitModel model) {
  switch (model) {
    case InitModel::wide_deep:
      return "Wide & Deep";
    case InitModel::deepfm:
      return "DeepFM";
    case InitModel::dcn:
      return "DCN";
    case InitModel::dlrm:
      return "DLRM";
    case InitModel::din:
      return "DIN";
  }
  return "";
}

const char* template_word(InitModel model) {
  switch (model) {
    case InitModel::wide_deep:
      return "wdl";
    case InitModel::deepfm:
      return "deepfm";
    case InitModel::dcn:
      return "dcn";
    case InitModel::dlrm:
      return "dlrm";
    case InitModel::din:
      return "din";
  }
  return "";
}

}  // namespace hctr
