#include "prepare/preprocess/criteo_convert.h"

#include <algorithm>
#include <limits>

#include "core/base/expect.h"
#include "core/base/file_lock.h"
#include "prepare/preprocess/preprocess.h"

namespace hctr {
namespace {

void check_criteo_options(const CriteoOptions& options) {
  check_criteo_style(options.style);
  const bool once = std::find(options.inputs.begin(), options.inputs.end(), "-") != options.inputs.end();
  if (once && (options.holdout > 0 || options.min_count > 0))
    throw Error(Kind::usage,
                "--holdout and --min-count read the input more than once: name files instead of the standard input");
  if (options.inputs.empty()) throw Error(Kind::usage, "no input files");
  if (options.rows_per_file < 1) throw Error(Kind::usage, "--rows-per-file must be at least 1");
  if (!(options.holdout >= 0 && options.holdout < 1))
    throw Error(Kind::usage, cat("--holdout must be between 0 and 1, not ", options.holdout));
  if (options.min_count < 0 || options.min_count > std::numeric_limits<uint32_t>::max())
    throw Error(Kind::usage, cat("--min-count ", options.min_count, " is out of range"));
}

}  // namespace

CriteoSummary convert_criteo(const CriteoOptions& given, const Log& log) {
  check_criteo_options(given);
  PreprocessOptions options;
  options.table = criteo_table();
  options.inputs = given.inputs;
  options.folder = given.folder;
  options.criteo = given.style;
  options.key_bytes = given.style.key_bytes;
  options.check = given.style.check;
  options.dense.log = true;
  options.passes = given.min_count > 1 ? 2 : 1;
  options.min_count = std::max<int64_t>(given.min_count, 1);
  if (given.holdout > 0) options.holdout = {.by = Holdout::By::position, .share = given.holdout};
  options.rows_per_file = given.rows_per_file;
  options.bad_rows = given.bad_rows;
  options.force = given.force;
  options.threads = given.threads;
  options.progress = given.progress;
  const FileLock lock(given.folder / "", "the folder");
  const PreprocessSummary done = preprocess(options, log);
  CriteoSummary summary{.train_rows = done.train.rows,
                        .val_rows = done.eval.rows,
                        .bad_rows = done.train.bad_rows,
                        .train_positives = done.train.positives,
                        .val_positives = done.eval.positives,
                        .train_files = done.train.files,
                        .val_files = done.eval.files};
  for (const Vocabulary& values : done.fitted.vocabularies)
    summary.distinct_values += values.distinct() + (values.missing() > 0);
  return summary;
}

Json criteo_data_section(const CriteoOptions& options) {
  const CriteoStyle& style = options.style;
  Json section, label, dense, sparse;
  section.set("type", "Data").set("format", "Norm").set("source", (options.folder / "train.txt").string());
  if (options.holdout > 0) section.set("eval_source", (options.folder / "val.txt").string());
  section.set("check", style.check == Check::sum ? "Sum" : "None");
  label.set("top", "label").set("label_dim", 1);
  dense.set("top", "dense").set("dense_dim", style.dense_dim());
  const auto add = [&](const char* top, int64_t slots, int64_t max_nnz) {
    Json input;
    input.set("top", top).set("type", "DistributedSlot").set("max_feature_num_per_sample", slots * max_nnz);
    input.set("max_nnz", max_nnz).set("slot_num", slots);
    sparse.add(std::move(input));
  };
  if (style.wide != Wide::none) add("wide_data", 1, style.wide_keys());
  add("deep_data", style.deep_slots(), 1);
  section.set("label", std::move(label)).set("dense", std::move(dense)).set("sparse", std::move(sparse));
  return section;
}

}  // namespace hctr
