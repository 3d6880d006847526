// Fuzz entries for configs, model files and checkpoint files.
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/comm/self_comm.h"
#include "formats/checkpoint/state_reader.h"
#include "fuzz/model_entry_tools.h"
#include "net/model/replica.h"
#include "train/run_progress.h"

namespace hctr::fuzz {

namespace {

Config parsed_model() {
  constexpr const char* kText = R"({"solver": {"batchsize": 4, "max_iter": 1, "seed": 5, "input_key_type": "I64",
               "checkpoint": {"whole_every": 2}},
    "optimizer": {"type": "Adam", "update_type": "Local",
      "adam_hparam": {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6}},
    "layers": [
      {"type": "Data", "source": "list.txt", "check": "None", "label": {"top": "label", "label_dim": 1},
       "dense": {"top": "dense", "dense_dim": 2},
       "sparse": [{"top": "keys", "type": "LocalizedSlot", "max_feature_num_per_sample": 2, "slot_num": 2},
                  {"top": "more", "type": "DistributedSlot", "max_feature_num_per_sample": 2, "slot_num": 1}]},
      {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "keys", "top": "deep",
       "sparse_embedding_hparam": {"embedding_vec_size": 3, "combiner": "sum"}},
      {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "more", "top": "wide",
       "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": "sum", "min_count": 2}},
      {"type": "Reshape", "bottom": "deep", "top": "flat", "leading_dim": 6},
      {"type": "Reshape", "bottom": "wide", "top": "one", "leading_dim": 1},
      {"type": "Concat", "bottom": ["flat", "one", "dense"], "top": "all"},
      {"type": "BatchNorm", "bottom": "all", "top": "norm", "bn_param": {"factor": 0.25, "eps": 1e-4}},
      {"type": "InnerProduct", "bottom": "norm", "top": "fc", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"}]})";
  Problems problems;
  Config config = read_config(Json::parse(kText, "fuzzed.json"), problems);
  problems.throw_if_any("fuzzed.json");
  return config;
}

}  // namespace

const Config& fuzzed_model() {
  static const Config config = parsed_model();
  return config;
}

namespace {

Runtime& shared_runtime() {
  static Runtime runtime{Device{}, {.threads = 1, .seed = 5}};
  return runtime;
}

struct FuzzedModel {
  Config config = fuzzed_model();
  SelfComm comm;
  Replica model{config, shared_runtime(), comm, {4, 4, 1}};

  bool has_rows() const {
    for (const auto& counts : {model.table_rows(), model.table_counts()})
      for (const auto& [table, of_table] : counts)
        if (const auto rows = of_table.find("rows"); rows != of_table.end() && rows->second > 0) return true;
    return false;
  }
};

/// An empty model. Creating one takes longer than rejecting a file, so the model is reused until it contains rows.
FuzzedModel& empty_model() {
  shared_runtime();  // constructed before `model`, so destroyed after `model`
  static std::unique_ptr<FuzzedModel> model;
  if (!model || model->has_rows()) model = std::make_unique<FuzzedModel>();
  return *model;
}

/// The row counts in a checkpoint, as text.
std::string row_counts(const Manifest& manifest) {
  std::string counts;
  if (const Json::Object* values = manifest.files.at(0).values.object())
    for (const auto& [name, value] : *values)
      if (name.ends_with("/rows")) counts += cat(name, "=", value.text(), ";");
  return counts;
}

/// Calls `load` with a model for loading the exact state of a checkpoint: the model is empty, or has the row counts of
/// the checkpoint.
template <class Load>
void with_model_of_as_many_rows(const Manifest& manifest, const Load& load) {
  shared_runtime();
  static std::unique_ptr<FuzzedModel> model;
  static std::string loaded;
  const std::string counts = row_counts(manifest);
  if (!model || (loaded != counts && model->has_rows())) model = std::make_unique<FuzzedModel>();
  loaded.clear();  // stays empty if `load` throws
  load(*model);
  loaded = counts;
}

}  // namespace

void config_text(Bytes bytes) {
  try {
    Problems problems;
    const Config config = read_config(Json::parse(bytes_text(bytes), "fuzzed"), problems);
    if (!problems.any_error()) wire(config, config.solver.batchsize, problems);
    problems.throw_if_any("fuzzed");
  } catch (const Error& error) {
    expect(error.kind() == Kind::config || error.kind() == Kind::data || error.kind() == Kind::io);
  }
}

void model_set(Bytes bytes) {
  const auto [dense, tables] = split_at_zero(bytes.empty() ? bytes : bytes.subspan(1));
  const auto [deep, wide] = split_at_zero(tables);
  const uint8_t which = bytes.empty() ? 0 : bytes[0];
  FuzzedModel& fuzzed = empty_model();
  SolverSection& solver = fuzzed.config.solver;
  solver.dense_model_file.clear();
  solver.sparse_model_file.clear();
  // Zero bytes separate the files of an input, so 255 encodes a zero byte within a file.
  const auto unmask = [](Bytes masked) {
    std::vector<uint8_t> plain(masked.begin(), masked.end());
    for (uint8_t& byte : plain) byte = static_cast<uint8_t>(byte == 255 ? 0 : byte);
    return plain;
  };
  if (which & 1) solver.dense_model_file = model_folder().write("f_dense_1.model", unmask(dense)).string();
  if (which & 2)
    solver.sparse_model_file = {model_folder().write("f0_sparse_1.model", unmask(deep)).string(),
                                model_folder().write("f1_sparse_1.model", unmask(wide)).string()};
  tolerate([&] { fuzzed.model.load(); });
}

void checkpoint_index(Bytes bytes) {
  tolerate([&] {
    const Json json = manifest_json(bytes);
    if (const Json* progress = json.find("progress")) run_progress(*progress);
    if (const Json* files = json.find("files"); files && files->array())
      for (const Json& file : *files->array()) {
        const StateIndex index = state_index(file);
        for (const StateArray& array : index.arrays)
          expect(array.offset >= 0 && array.bytes() >= 0 && array.stored_bytes() >= 0 &&
                 array.offset + array.stored_bytes() <= index.bytes);
      }
  });
}

namespace {

constexpr const char* kStateFile = "rank_0.state";

const fs::path& checkpoint_folder() {
  // named like a checkpoint, so that increments can refer to it as their base
  static const fs::path folder = new_folder("iteration_000001");
  return folder;
}

Manifest manifest_of_state(Bytes text) {
  const Json json = manifest_json(text);
  Manifest manifest;
  manifest.files.push_back(state_index(json));
  manifest.files[0].file = kStateFile;
  // The same file also contains the rows of the base.
  if (const Json* index = json.find("base")) {
    Manifest whole;
    whole.files.push_back(state_index(*index));
    whole.files[0].file = kStateFile;
    manifest.base = {.name = "", .folder = checkpoint_folder(), .of = std::make_shared<const Manifest>(whole)};
  }
  expect_fits_base(manifest, checkpoint_folder());
  return manifest;
}

/// Returns the manifest in `text`; nullopt if the manifest is rejected. Most inputs differ only in the bytes after the
/// text, and parsing the text dominates the run time, so results are cached by text.
const std::optional<Manifest>& known_manifest(Bytes text) {
  static std::unordered_map<std::string, std::optional<Manifest>> known;
  std::string key = bytes_text(text);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  if (known.size() == 4096) known.clear();
  std::optional<Manifest>& manifest = known[std::move(key)];
  tolerate([&] { manifest = manifest_of_state(text); });
  return manifest;
}

}  // namespace

bool loads_checkpoint(Bytes bytes) {
  const auto split = split_at_zero(bytes);
  const Bytes state = split.second;
  const std::optional<Manifest>& manifest = known_manifest(split.first);
  if (!manifest) return false;
  static const RewrittenFile file(checkpoint_folder() / kStateFile);
  file.write(state);
  const bool exact = !state.empty() && state[0] % 2 == 0;
  bool loaded = false;
  const auto load = [&](FuzzedModel& fuzzed) {
    fuzzed.model.load_state(StateReader(checkpoint_folder(), *manifest, exact, 0, shared_runtime().compute_stream()));
    loaded = true;
  };
  tolerate([&] {
    if (exact) return with_model_of_as_many_rows(*manifest, load);
    shared_runtime();
    // recreated for every load, because a load may add candidates without adding a row
    static std::unique_ptr<FuzzedModel> model;
    if (!model || model->has_rows()) model = std::make_unique<FuzzedModel>();
    load(*model);
    model.reset();
  });
  return loaded;
}

void checkpoint_state(Bytes bytes) { loads_checkpoint(bytes); }

}  // namespace hctr::fuzz
