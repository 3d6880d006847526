#include "support/topologies.h"

#include <algorithm>
#include <set>

#include "core/base/expect.h"

namespace hctr::test {
namespace {

using Object = Json::Object;
using Array = Json::Array;

struct Sparse {
  std::string top;
  int64_t slots, most_keys, nnz;  ///< `most_keys`: keys of a sample; `nnz`: keys of a slot
  bool localized = false;
};

/// The solver and optimizer of a model.
struct Plan {
  int64_t batch = 16384, iterations = 10000;
  Array gpus = {Json(0)};
  double rate = 0.001;
  bool global = true;
  std::string optimizer = "Adam";
  int64_t warmup = 1, decay_start = 0, decay_steps = 1, mixed_precision = 0;
  double stop_at = 1;
};

Json names(const std::vector<std::string>& all) {
  if (all.size() == 1) return all[0];
  Array array;
  for (const std::string& name : all) array.emplace_back(name);
  return array;
}

/// Writes a config layer by layer. Each layer function returns the name of its output.
class Writer {
 public:
  Writer(Version version, Size size, Variant variant) : version_(version), size_(size), variant_(std::move(variant)) {}

  bool small() const { return size_ == Size::small; }
  bool since(Version version) const { return version_ >= version; }
  /// Returns `full` in full size, otherwise `when_small`.
  int64_t pick(int64_t full, int64_t when_small) const { return small() ? when_small : full; }

  void data(int64_t dense_dim, const std::vector<Sparse>& inputs, const std::string& format = "Norm",
            const Array& slot_sizes = {}) {
    const std::string stored = !variant_.format.empty() ? variant_.format : small() ? "Norm" : format;
    Json section(Object{{"name", "data"}, {"type", "Data"}});
    if (since(Version::v2_2) && stored != "Norm") section.set("format", stored);
    section.set("source", "file_list.txt")
        .set("eval_source", "file_list_test.txt")
        .set("check", stored == "Norm" ? "Sum" : "None");
    if (stored == "Raw") section.set("num_samples", pick(4195197692, 400)).set("eval_num_samples", pick(89137319, 100));
    if (stored != "Norm" && !slot_sizes.empty()) section.set("slot_size_array", slot_sizes);
    if (since(Version::v2_2_1))
      section.set("cache_eval_data", 20);
    else if (since(Version::v2_2))
      section.set("cache_eval_data", true);
    if (since(Version::v2_2_1) && stored == "Raw") section.set("float_label_dense", false);
    if (since(Version::v3_0)) section.set("num_workers", 2);
    section.set("label", Object{{"top", "label"}, {"label_dim", 1}})
        .set("dense", Object{{"top", "dense"}, {"dense_dim", dense_dim}});
    Array sparse;
    for (const Sparse& input : inputs) {
      Json each(Object{{"top", input.top}});
      if (since(Version::v3_1)) {
        each.set("slot_num", input.slots).set("nnz_per_slot", input.nnz).set("is_fixed_length", false);
      } else {
        each.set("type", input.localized ? "LocalizedSlot" : "DistributedSlot")
            .set("max_feature_num_per_sample", input.most_keys);
        if (since(Version::v2_2)) each.set("max_nnz", input.nnz);
        each.set("slot_num", input.slots);
      }
      sparse.push_back(each);
    }
    section.set("sparse", sparse);
    layers_.push_back(section);
  }

  std::string embedding(const std::string& type, const std::string& bottom, int64_t vocabulary, int64_t dim,
                        int combiner = 0, const Array& slot_sizes = {}) {
    const std::string top = next("sparse_embedding");
    Json table;
    if (!slot_sizes.empty())
      table.set("slot_size_array", slot_sizes);
    else if (since(Version::v3_1))
      table.set("workspace_size_per_gpu_in_mb", std::max<int64_t>(1, vocabulary * dim * 4 / (1 << 20)));
    else if (since(Version::v2_2))
      table.set("max_vocabulary_size_per_gpu", vocabulary);
    else
      table.set("vocabulary_size", vocabulary).set("load_factor", 0.75);
    table.set("embedding_vec_size", dim)
        .set("combiner", since(Version::v3_1) ? Json(combiner ? "mean" : "sum") : Json(combiner));
    Json section(Object{{"name", top}, {"type", type}, {"bottom", bottom}, {"top", top}});
    if (type == "LocalizedSlotSparseEmbeddingHash") section.set("plan_file", "all2all_plan.json");
    section.set("sparse_embedding_hparam", table);
    layers_.push_back(section);
    return top;
  }

  /// Adds a layer with one top. Returns the top, which is named after the layer type.
  std::string layer(const std::string& type, const std::string& kind, const std::vector<std::string>& bottoms,
                    const Object& fields = {}) {
    const std::string top = next(kind);
    add(type, bottoms, {top}, fields);
    return top;
  }
  std::string reshape(const std::string& bottom, int64_t width) {
    return layer("Reshape", "reshape", {bottom}, {{"leading_dim", width}});
  }
  std::string concat(const std::vector<std::string>& bottoms) { return layer("Concat", "concat", bottoms); }
  std::string fc(const std::string& bottom, int64_t width) {
    Json params(Object{{"num_output", width}});
    return layer("InnerProduct", "fc", {bottom}, {{"fc_param", params}});
  }
  std::string multiply(const std::string& bottom, int64_t slots, int64_t dim) {
    return layer(since(Version::v3_0) ? "WeightMultiply" : "Multiply", "multiply", {bottom},
                 {{"weight_dims", Array{slots, dim}}});
  }
  std::string sum_of_columns(const std::string& bottom) {
    return layer("ReduceSum", "reducesum", {bottom}, {{"axis", 1}});
  }
  /// Adds a Slice layer. In old versions, a tensor with several readers needs a Slice layer that copies it for each
  /// reader.
  std::vector<std::string> slices(const std::string& bottom, const std::vector<std::pair<int64_t, int64_t>>& ranges) {
    std::vector<std::string> tops;
    Array list;
    for (const auto& [begin, end] : ranges) {
      tops.push_back(next("slice"));
      list.emplace_back(Array{begin, end});
    }
    add("Slice", {bottom}, tops, {{"ranges", list}});
    return tops;
  }
  /// Adds FC, ReLU and, with `dropout`, Dropout for each width.
  std::string hidden(std::string bottom, const std::vector<int64_t>& widths, bool dropout) {
    for (const int64_t width : widths) {
      bottom = layer("ReLU", "relu", {fc(bottom, pick(width, 16))});
      if (dropout) bottom = layer("Dropout", "dropout", {bottom}, {{"rate", 0.5}});
    }
    return bottom;
  }

  Json finish(const std::string& logits, const Plan& plan) {
    add("BinaryCrossEntropyLoss", {logits, "label"}, {"loss"}, {});
    Json config;
    config.set("solver", solver(plan)).set("optimizer", optimizer(plan)).set("layers", layers_);
    if (since(Version::v3_1)) config.set("all_reduce", Object{{"algo", "NCCL"}, {"grouped", false}});
    return config;
  }

 private:
  std::string next(const std::string& kind) {
    int n = 1;
    while (used_.contains(cat(kind, n))) ++n;
    return *used_.insert(cat(kind, n)).first;
  }

  void add(const std::string& type, const std::vector<std::string>& bottoms, const std::vector<std::string>& tops,
           const Object& fields) {
    Json section(Object{{"name", tops[0]}, {"type", type}, {"bottom", names(bottoms)}, {"top", names(tops)}});
    for (const auto& [key, value] : fields) section.set(key, value);
    layers_.push_back(section);
  }

  Json solver(const Plan& plan) const {
    Json solver(Object{{"lr_policy", "fixed"},
                       {"display", pick(1000, 2)},
                       {"max_iter", pick(plan.iterations, 3)},
                       {"gpu", plan.gpus},
                       {"batchsize", pick(plan.batch, 64)},
                       {"snapshot", 10000000},
                       {"snapshot_prefix", "./"},
                       {"eval_interval", pick(1000, 2)}});
    solver.set(since(Version::v3_0) ? "max_eval_batches" : "eval_batches", pick(60, 2));
    if (plan.mixed_precision > 0) solver.set("mixed_precision", plan.mixed_precision);
    if (since(Version::v2_2)) {
      solver.set("batchsize_eval", pick(plan.batch, 32))
          .set("input_key_type", small() ? "I64" : "I32")
          .set("seed", 0)
          .set("algorithm_search", true);
      const bool bare = since(Version::v2_2_1) && plan.stop_at == 1;  // version 2.2 needs a threshold
      solver.set("eval_metrics", Array{bare ? Json("AUC") : Json(cat("AUC:", plan.stop_at)), Json("AverageLoss")});
    }
    if (since(Version::v2_2_1)) solver.set("cuda_graph", true);
    if (since(Version::v3_0) && plan.mixed_precision == 0) solver.set("enable_tf32_compute", false);
    if (since(Version::v3_1))
      solver.set("device_layout", "LocalFirst").set("enable_overlap", false).set("holistic_cuda_graph", false);
    return solver;
  }

  Json optimizer(const Plan& plan) const {
    const std::string type = variant_.optimizer.empty() ? plan.optimizer : variant_.optimizer;
    Json rule;
    rule.set(type == "Adam" && !since(Version::v2_2) ? "alpha" : "learning_rate", plan.rate);
    if (since(Version::v2_2)) {
      rule.set("warmup_steps", plan.warmup).set("decay_start", plan.decay_start).set("decay_steps", plan.decay_steps);
      rule.set("decay_power", 2.0).set("end_lr", 0.0);
    }
    if (type == "Adam") rule.set("beta1", 0.9).set("beta2", 0.999).set("epsilon", 1e-7);
    if (type == "MomentumSGD" || type == "Nesterov") rule.set("momentum_factor", 0.0);
    if (type == "SGD" && since(Version::v2_2_1)) rule.set("atomic_update", true);
    const std::string object = type == "Adam"       ? "adam"
                               : type == "SGD"      ? "sgd"
                               : type == "Nesterov" ? "nesterov"
                                                    : "momentum_sgd";
    Json section(Object{{"type", type}});
    if (since(Version::v2_3))
      section.set("update_type", plan.global ? "Global" : "Local");
    else
      section.set("global_update", plan.global);
    section.set(object + "_hparam", rule);
    return section;
  }

  Version version_;
  Size size_;
  Variant variant_;
  Array layers_;
  std::set<std::string> used_;
};

const std::string kDistributed = "DistributedSlotSparseEmbeddingHash", kLocalized = "LocalizedSlotSparseEmbeddingHash";

Array gpus(int count) {
  Array list;
  for (int i = 0; i < count; ++i) list.emplace_back(i);
  return list;
}

/// Criteo model: hashed features without dense features, three hidden layers.
Json criteo_of(int64_t slots, int combiner, Version version, Size size, const Variant& variant) {
  Writer w(version, size, variant);
  const int64_t nnz = slots == 1 ? 39 : 4;
  w.data(0, {{"data1", slots, 39, nnz}});
  const std::string vectors = w.embedding(kDistributed, "data1", w.pick(1737710, 1000), w.pick(64, 8), combiner);
  const std::string hidden = w.hidden(w.reshape(vectors, slots * w.pick(64, 8)), {200, 200, 200}, false);
  return w.finish(w.fc(hidden, 1), {.batch = 40960,
                                    .gpus = gpus(2),
                                    .rate = version < Version::v2_2 && size == Size::full ? 0.005 : 0.001,
                                    .global = false});
}
Json criteo(Version version, Size size, const Variant& variant) { return criteo_of(1, 0, version, size, variant); }
Json criteo_multi_slots(Version version, Size size, const Variant& variant) {
  return criteo_of(10, 1, version, size, variant);
}

/// Deep & Cross Network.
Json dcn_of(const std::string& embedding, int layers, const Plan& plan, Version version, Size size,
            const Variant& variant) {
  Writer w(version, size, variant);
  w.data(13, {{"data1", 26, 30, 1, embedding == kLocalized}});
  const int64_t dim = w.pick(16, 4), width = 26 * dim + 13;
  const std::string vectors = w.embedding(embedding, "data1", w.pick(1737710, 1000), dim);
  const auto branches = w.slices(w.concat({w.reshape(vectors, 26 * dim), "dense"}), {{0, width}, {0, width}});
  const std::string cross =
      w.layer("MultiCross", "multicross", {branches[0]}, {{"mc_param", Object{{"num_layers", 6}}}});
  const std::string deep =
      w.hidden(branches[1], std::vector<int64_t>(static_cast<size_t>(w.pick(layers, 2)), 1024), true);
  return w.finish(w.fc(w.concat({deep, cross}), 1), plan);
}
Json dcn(Version version, Size size, const Variant& variant) {
  return dcn_of(kDistributed, 2,
                {.batch = version < Version::v3_0 ? 512 : 16384,
                 .iterations = version < Version::v2_2 ? 300000 : 10000,
                 .gpus = gpus(4)},
                version, size, variant);
}
Json dcn_localized(Version version, Size size, const Variant& variant) {
  return dcn_of(kLocalized, 2, {.gpus = gpus(2)}, version, size, variant);
}
Json dcn2nodes(Version version, Size size, const Variant& variant) {
  Array second;
  for (int i = 0; i < 8; ++i) second.emplace_back(i);
  return dcn_of(kLocalized, 7, {.batch = 40960, .iterations = 2000, .gpus = {gpus(8), second}}, version, size, variant);
}

/// DeepFM: first-order and second-order factorization machine, and a deep network.
Json deepfm(Version version, Size size, const Variant& variant) {
  Writer w(version, size, variant);
  w.data(13, {{"data1", 26, 30, 1}});
  const std::string rows = w.reshape(w.embedding(kDistributed, "data1", w.pick(1737710, 1000), 11), 11);
  const auto parts = w.slices(rows, {{0, 10}, {10, 11}});
  const std::string vectors = w.reshape(parts[0], 260), weights = w.reshape(parts[1], 26);
  const auto dense = w.slices("dense", {{0, 13}, {0, 13}});
  const auto all = w.slices(w.concat({vectors, w.multiply(dense[0], 13, 10)}), {{0, 390}, {0, 390}});
  const std::string second = w.sum_of_columns(w.layer("FmOrder2", "fm", {all[0]}, {{"out_dim", 10}}));
  const std::string deep = w.fc(w.hidden(all[1], {400, 400, 400}, true), 1);
  const std::string first = w.sum_of_columns(w.concat({weights, w.multiply(dense[1], 13, 1)}));
  return w.finish(w.layer("Add", "add", {deep, first, second}), {.batch = version < Version::v3_0 ? 512 : 16384});
}

/// Wide & Deep.
Json wdl_of(bool localized, int layers, bool cast, const Plan& plan, Version version, Size size,
            const Variant& variant) {
  Writer w(version, size, variant);
  w.data(13, {{"wide_data", 1, w.pick(30, 2), w.pick(30, 2)}, {"deep_data", 26, 30, 1, localized}});
  const int64_t dim = w.pick(16, 4);
  const std::string wide_vectors = w.embedding(kDistributed, "wide_data", w.pick(2322444, 1000), 1);
  const std::string deep_vectors =
      w.embedding(localized ? kLocalized : kDistributed, "deep_data", w.pick(2322444, 1000), dim);
  const std::string deep = w.reshape(deep_vectors, 26 * dim), wide = w.reshape(wide_vectors, 1);
  const std::string dense = cast ? w.layer("Cast", "cast", {"dense"}) : "dense";
  const std::string hidden =
      w.hidden(w.concat({deep, dense}), std::vector<int64_t>(static_cast<size_t>(w.pick(layers, 2)), 1024), true);
  return w.finish(w.layer("Add", "add", {w.fc(hidden, 1), wide}), plan);
}
Json wdl(Version version, Size size, const Variant& variant) {
  return wdl_of(false, 2, false, {.iterations = 30000}, version, size, variant);
}
Json wdl8gpus(Version version, Size size, const Variant& variant) {
  return wdl_of(true, 7, false, {.iterations = 30000, .gpus = gpus(8)}, version, size, variant);
}
Json wdl_fp16(Version version, Size size, const Variant& variant) {
  return wdl_of(false, 2, true,
                {.batch = 2048,
                 .iterations = 18000,
                 .rate = 8,
                 .global = false,
                 .optimizer = "SGD",
                 .warmup = 1000,
                 .mixed_precision = 1024,
                 .stop_at = 0.8025},
                version, size, variant);
}

/// DLRM: dot products of all pairs of vectors.
Json dlrm(Version version, Size size, const Variant& variant) {
  Writer w(version, size, variant);
  const Array terabyte = {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
                          38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
                          14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36};
  const Array sizes = w.small() ? Array(26, Json(30)) : terabyte;
  w.data(13, {{"data1", 26, 26, 1, true}}, "Raw", sizes);
  const int64_t dim = w.pick(128, 8);
  const std::string vectors = w.embedding("LocalizedSlotSparseEmbeddingOneHot", "data1", 0, dim, 0, sizes);
  const std::string bottom = w.layer("ReLU", "relu", {w.fc(w.hidden("dense", {512, 256}, false), dim)});
  const std::string pairs = w.layer("Interaction", "interaction", {bottom, vectors});
  return w.finish(w.fc(w.hidden(pairs, {1024, 1024, 512, 256}, false), 1), {.batch = 65536,
                                                                            .iterations = 75000,
                                                                            .gpus = gpus(8),
                                                                            .rate = 24,
                                                                            .global = false,
                                                                            .optimizer = "SGD",
                                                                            .warmup = 8000,
                                                                            .decay_start = 48000,
                                                                            .decay_steps = 24000,
                                                                            .stop_at = 0.8025});
}

}  // namespace

std::string name_of(Version version) {
  static const char* const names[] = {"2.1", "2.2", "2.2.1", "2.3", "3.0", "3.1"};
  return names[static_cast<size_t>(version)];
}

const std::vector<Topology>& topologies() {
  static const std::vector<Topology> all = {
      {"criteo", Version::v2_1, false, criteo},
      {"criteo_multi_slots", Version::v2_1, false, criteo_multi_slots},
      {"dcn", Version::v2_1, false, dcn},
      {"dcn_localized", Version::v2_1, false, dcn_localized},
      {"dcn2nodes", Version::v2_1, false, dcn2nodes},
      {"deepfm", Version::v2_1, false, deepfm},
      {"wdl", Version::v2_1, false, wdl},
      {"wdl8gpus", Version::v2_1, false, wdl8gpus},
      {"wdl_fp16", Version::v2_2, false, wdl_fp16},
      {"dlrm", Version::v2_2, true, dlrm},
  };
  return all;
}

}  // namespace hctr::test
