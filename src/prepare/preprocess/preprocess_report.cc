#include "prepare/preprocess/preprocess_report.h"

#include <algorithm>
#include <numeric>

#include "config/config_file.h"
#include "formats/data/numbering.h"
#include "formats/raw/raw_set.h"
#include "prepare/preprocess/saved_columns.h"

namespace hctr {
namespace {

/// The slot sizes in record layout: in Norm, crosses share the first slot.
std::vector<int64_t> record_slot_sizes(const PreprocessOptions& options, const PreprocessSummary& summary) {
  std::vector<int64_t> sizes = summary.fitted.slot_sizes;
  const auto wide = static_cast<ptrdiff_t>(options.crosses.size());
  if (wide < 2 || !options.as_norm()) return sizes;
  const int64_t together = std::accumulate(sizes.begin(), sizes.begin() + wide, int64_t{0});
  sizes.erase(sizes.begin() + 1, sizes.begin() + wide);
  sizes[0] = together;
  return sizes;
}

Json sparse_input(const char* top, int64_t slots, const std::vector<int64_t>& nnz) {
  Json input;
  input.set("top", top).set("type", "DistributedSlot").set("slot_num", slots);
  const int64_t most = *std::max_element(nnz.begin(), nnz.end());
  if (std::all_of(nnz.begin(), nnz.end(), [&](int64_t n) { return n == most; }))
    return input.set("max_feature_num_per_sample", slots * most).set("max_nnz", most);
  return input.set("nnz_per_slot", to_json(nnz));
}

Json describe_set(const PreprocessSummary::Set& set) {
  return Json(
      Json::Object{{"rows", set.rows}, {"positives", set.positives}, {"files", set.files}, {"bad_rows", set.bad_rows}});
}

Json describe_slots(const PreprocessOptions& options, const PreprocessSummary& summary) {
  Json slots(Json::Array{});
  const std::vector<std::string> names = options.slot_names();
  int64_t offset = 0;
  for (size_t slot = 0; slot < names.size(); ++slot) {
    const int64_t size = summary.fitted.slot_sizes[slot];
    Json one(Json::Object{{"name", names[slot]},
                          {"size", size},
                          {"offset", options.as_norm() ? offset : 0},
                          {"most_keys", summary.most_nnz[slot]}});
    offset += size;
    if (options.passes == 2) {
      const Vocabulary& vocabulary = summary.fitted.vocabularies[slot];
      one.set("distinct", vocabulary.distinct()).set("missing", vocabulary.missing()).set("rare", vocabulary.rare());
    }
    slots.add(std::move(one));
  }
  return slots;
}

}  // namespace

Json preprocess_data_section(const PreprocessOptions& options, const PreprocessSummary& summary) {
  const bool raw = options.format == kRawFormat;
  const auto place = [&](const char* stem) { return options.result(stem).string(); };
  Json section, label, dense, sparse(Json::Array{});
  section.set("type", "Data").set("format", to_json(options.format)).set("source", place("train"));
  if (summary.eval.rows > 0) section.set("eval_source", place("val"));
  if (raw) section.set("num_samples", summary.train.rows);
  if (raw && summary.eval.rows > 0) section.set("eval_num_samples", summary.eval.rows);
  if (raw) section.set("float_label_dense", options.float_label_dense);
  if (options.as_norm()) section.set("check", options.check == Check::sum ? "Sum" : "None");
  label.set("top", "label").set("label_dim", static_cast<int64_t>(options.table.labels().size()));
  dense.set("top", "dense").set("dense_dim", static_cast<int64_t>(options.table.numbers().size()));
  const auto wide = static_cast<ptrdiff_t>(options.crosses.size());
  if (wide > 0)
    sparse.add(options.as_norm() ? sparse_input("wide_data", 1, {wide}) : sparse_input("wide_data", wide, {1}));
  const std::vector<int64_t> nnz(summary.most_nnz.begin() + wide, summary.most_nnz.end());
  sparse.add(sparse_input("deep_data", static_cast<int64_t>(nnz.size()), nnz));
  section.set("label", std::move(label)).set("dense", std::move(dense)).set("sparse", std::move(sparse));
  return with_escaped_variables(section.set("slot_size_array", to_json(record_slot_sizes(options, summary))));
}

Json describe_preprocessed(const PreprocessOptions& options, const PreprocessSummary& summary) {
  Json dense(Json::Array{});
  const std::vector<std::string> numbers = options.table.numbers();
  for (size_t i = 0; i < numbers.size(); ++i)
    dense.add(options.passes == 2 ? summary.fitted.dense[i].describe(numbers[i])
                                  : Json(Json::Object{{"name", numbers[i]}}));
  Json json(
      Json::Object{{"schema", kCheckedDescription}, {"format", to_json(options.format)}, {"passes", options.passes}});
  json.set("train", describe_set(summary.train)).set("eval", describe_set(summary.eval));
  json.set("labels", to_json(options.table.labels()))
      .set("dense", std::move(dense))
      .set("slots", describe_slots(options, summary));
  json.set("slot_size_array", to_json(record_slot_sizes(options, summary)));
  json.set("numbering", numbering_of(options, summary.fitted))
      .set("columns", describe_columns(options, summary.fitted));
  return json.set("data", preprocess_data_section(options, summary));
}

}  // namespace hctr
