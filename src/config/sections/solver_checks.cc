// Rules across the fields of the solver section.
#include "config/sections/solver_checks.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

/// Some fields have other spellings in other versions of HugeCTR. Copies their values to the fields that this program
/// reads.
void resolve_spellings(SolverSection& s, const std::string& pointer, Problems& problems) {
  const auto differ = [&](const char* spelling, const char* field) {
    problems.error(cat(pointer, "/", spelling), cat("\"", spelling, "\" and \"", field,
                                                    "\" are names of the same field and have different values; "
                                                    "keep one"));
  };
  if (s.i64_input_key) {
    const KeyType type = *s.i64_input_key ? KeyType::i64 : KeyType::i32;
    if (s.input_key_type && *s.input_key_type != type) differ("i64_input_key", "input_key_type");
    s.input_key_type = type;
  }
  if (s.use_mixed_precision) {
    const Precision asked = !*s.use_mixed_precision ? Precision{}
                            : s.scaler              ? Precision{DType::f16, *s.scaler, false}
                                                    : Precision::scaled();
    if (s.mixed_precision.mixed() && s.mixed_precision != asked) differ("use_mixed_precision", "mixed_precision");
    s.mixed_precision = asked;
  }
  if (s.fp8_least_width) {
    s.mixed_precision.least_fp8_width = *s.fp8_least_width;
    if (!s.mixed_precision.fp8_products)
      problems.note(pointer + "/fp8_least_width", "fp8_least_width has no effect: mixed_precision is not \"fp8\"");
  }
  if (s.fp32_products && s.enable_tf32_compute && *s.fp32_products != Fp32Products::tf32)
    differ("enable_tf32_compute", "fp32_products");
  if (s.fp32_products && *s.fp32_products != Fp32Products::fp32 && s.mixed_precision.mixed())
    problems.error(pointer + "/fp32_products",
                   "fp32_products is for fp32 GEMMs, which mixed_precision replaces; keep one");
  else if (s.fp32_products == Fp32Products::tf32)
    s.enable_tf32_compute = true;
  if (!s.tf32x3()) s.fp32_products.reset();
  if (s.algorithm_search == false) s.algorithm_search.reset();
  if (s.algorithm_search && !s.cuda_graph)
    problems.note(pointer + "/algorithm_search",
                  "algorithm_search has no effect with \"cuda_graph\": false: only GEMMs of recorded steps are "
                  "measured");
  if (s.algorithm_file && !s.algorithm_search)
    problems.note(pointer + "/algorithm_file", "algorithm_file has no effect without algorithm_search");
  if (s.scaler && !s.use_mixed_precision.value_or(false))
    problems.note(pointer + "/scaler",
                  "\"scaler\" is accepted and has no effect: \"use_mixed_precision\" is not true; set the loss "
                  "scale as the value of \"mixed_precision\"");
  if (s.auc_threshold) {
    auto& metrics = s.eval_metrics.metrics;
    const auto auc =
        std::find_if(metrics.begin(), metrics.end(), [](const Metric& metric) { return metric.type->name == "AUC"; });
    if (auc == metrics.end())
      problems.error(pointer + "/auc_threshold", "auc_threshold needs AUC in \"eval_metrics\"");
    else if (auc->stop_at && *auc->stop_at != *s.auc_threshold)
      differ("auc_threshold", "eval_metrics");
    else
      auc->stop_at = s.auc_threshold;
  }
  s.i64_input_key.reset();
  s.use_mixed_precision.reset();
  s.scaler.reset();
  s.auc_threshold.reset();
}

/// Checks that "keep_best" and "early_stopping" name the same metric, and that "eval_metrics" contains this metric.
/// Checks that a run with early stopping makes evaluations.
void check_best(const SolverSection& s, const std::string& pointer, Problems& problems) {
  const std::string& keep = s.checkpoint.keep_best;
  if (!keep.empty()) check_measured(keep, s.eval_metrics, pointer + "/checkpoint/keep_best", problems);
  if (!s.early_stopping.given) return;
  const std::string here = pointer + "/early_stopping";
  check_measured(s.early_stopping.metric, s.eval_metrics, here + "/metric", problems);
  if (!keep.empty() && keep != s.early_stopping.metric)
    problems.error(here + "/metric", cat("is \"", s.early_stopping.metric,
                                         "\", but \"keep_best\" of \"checkpoint\" is \"", keep, "\": name one metric"));
  if (s.eval_interval == 0) problems.error(here, "needs evaluations during training, but \"eval_interval\" is 0");
}

/// Checks that for each file with optimizer states, the config also names the file with the weights or rows.
void check_opt_states(SolverSection& s, const std::string& pointer, Problems& problems) {
  const auto empty = [](const std::string& file) { return file.empty(); };
  auto& tables = s.sparse_opt_states_file;
  if (std::all_of(tables.begin(), tables.end(), empty)) tables.clear();
  if (std::all_of(s.sparse_model_file.begin(), s.sparse_model_file.end(), empty)) s.sparse_model_file.clear();
  if (!s.load_layers.empty() && s.dense_model_file.empty())
    problems.error(pointer + "/load_layers",
                   "load_layers needs \"dense_model_file\", the file to load the layers "
                   "from");
  if (!s.load_layers.empty() && !s.dense_opt_states_file.empty())
    problems.error(pointer + "/dense_opt_states_file",
                   "dense_opt_states_file contains states of all weights, but \"load_layers\" selects some layers; "
                   "remove one of the two fields");
  for (size_t e = 0; e < tables.size() && tables.size() == s.sparse_model_file.size(); ++e)
    if (s.sparse_model_file[e].empty() && !tables[e].empty())
      problems.error(cat(pointer, "/sparse_opt_states_file/", e),
                     "the states need the rows of the table, but \"sparse_model_file\" is \"\" for this table");
  if (!s.dense_opt_states_file.empty() && s.dense_model_file.empty())
    problems.error(pointer + "/dense_opt_states_file",
                   "dense_opt_states_file needs \"dense_model_file\", the file of the weights");
  if (!tables.empty() && tables.size() != s.sparse_model_file.size())
    problems.error(pointer + "/sparse_opt_states_file",
                   cat("names ", tables.size(), tables.size() == 1 ? " file" : " files", " for ",
                       s.sparse_model_file.size(), " of \"sparse_model_file\"; expected one file of states for each"));
}

}  // namespace

void check_solver(SolverSection& s, const std::string& pointer, Problems& problems) {
  resolve_spellings(s, pointer, problems);
  if (s.max_iter && s.num_epochs)
    problems.error(pointer + "/num_epochs", "max_iter and num_epochs cannot be used together; keep one");
  if (s.max_eval_batches && s.max_eval_samples)
    problems.error(pointer + "/max_eval_samples",
                   "max_eval_batches and max_eval_samples cannot be used together; keep one");
  if (s.enable_tf32_compute && s.mixed_precision.mixed())
    problems.error(pointer + "/enable_tf32_compute",
                   "enable_tf32_compute is for fp32 GEMMs, which mixed_precision replaces; keep one");
  if (!s.max_iter && !s.num_epochs) s.num_epochs = 1;
  if (s.publish.given && s.snapshot_delta == 0)
    problems.error(pointer + "/publish",
                   "needs \"snapshot_delta\": the number of iterations between the "
                   "deltas to publish");
  if (s.compatibility.evaluation_continues && !s.eval_batches())
    problems.note(pointer + "/compatibility",
                  "evaluation_continues has no effect: max_eval_batches is not set, so each evaluation reads the whole "
                  "set");
  if (s.compatibility.drop_partial_batches && s.max_iter)
    problems.note(pointer + "/compatibility",
                  "drop_partial_batches has no effect with max_iter: the last batch of the set is filled up from "
                  "the start of the set");
  check_metrics(s.eval_metrics, s.group_by, pointer, problems);
  check_best(s, pointer, problems);
  check_opt_states(s, pointer, problems);
}

}  // namespace hctr
