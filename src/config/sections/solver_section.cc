#include "config/sections/solver_section.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {

const std::vector<std::pair<std::string, LrPolicy>>& EnumWords<LrPolicy>::table() {
  static const std::vector<std::pair<std::string, LrPolicy>> words = {{"fixed", LrPolicy::fixed}};
  return words;
}

const std::vector<std::pair<std::string, OnNan>>& EnumWords<OnNan>::table() {
  static const std::vector<std::pair<std::string, OnNan>> words = {{"stop", OnNan::stop}, {"skip", OnNan::skip}};
  return words;
}

const std::vector<std::pair<std::string, KeyType>>& EnumWords<KeyType>::table() {
  static const std::vector<std::pair<std::string, KeyType>> words = {{"I32", KeyType::i32}, {"I64", KeyType::i64}};
  return words;
}

const std::vector<std::pair<std::string, Fp32Products>>& EnumWords<Fp32Products>::table() {
  static const std::vector<std::pair<std::string, Fp32Products>> words = {
      {"fp32", Fp32Products::fp32}, {"tf32", Fp32Products::tf32}, {"tf32x3", Fp32Products::tf32x3}};
  return words;
}

std::string read_value(const Json& value, const Range& range, GpuLists& out) {
  std::vector<int64_t> flat;
  out.per_process.clear();
  out.all = value.string() && *value.string() == "all";
  if (out.all) return "";
  const auto* elements = value.array();
  // [[0],[1]] lists the GPUs of two processes. Nested arrays need this test, because reading a list of integers would
  // accept the inner arrays as wrapped scalars.
  const bool nested = elements && std::all_of(elements->begin(), elements->end(),
                                              [](const Json& element) { return element.array() != nullptr; });
  if (nested ? !read_value(value, range, out.per_process).empty() : !read_value(value, range, flat).empty())
    out.per_process.clear();
  else if (!nested)
    out.per_process = {flat};
  for (const auto& list : out.per_process)
    for (const int64_t gpu : list)
      if (gpu < 0) return "GPU numbers from 0";
  return out.count() > 0 ? ""
                         : "an array of GPU numbers such as [0], an array of such arrays with one per "
                           "process, or \"all\"";
}

int64_t GpuLists::count() const {
  size_t sum = 0;
  for (const auto& list : per_process) sum += list.size();
  return static_cast<int64_t>(sum);
}

Json to_json(const GpuLists& gpus) {
  if (gpus.all) return "all";
  return gpus.per_process.size() == 1 ? to_json(gpus.per_process[0]) : to_json(gpus.per_process);
}

std::string read_value(const Json& value, const Range& range, Seed& out) {
  const Json& v = unwrapped(value);
  int64_t number = 0;
  if (constexpr double kEnd = 18446744073709551616.0;
      v.is_number() && !v.integer() && v.number() >= kEnd / 2 && v.number() <= kEnd) {
    out.value = v.number() < kEnd ? static_cast<uint64_t>(v.number())
                                  : UINT64_MAX;  // as a double, a seed near 2^64 is rounded to 2^64
    return "";
  }
  const std::string expected = read_value(v, range, number);
  if (expected.empty()) out.value = static_cast<uint64_t>(number);
  return expected;
}

namespace {

constexpr const char* kOfOptimizer = "this field belongs to the optimizer section";

/// Copies fields with spellings of other HugeCTR versions to the fields that this program reads.
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

/// Checks that "keep_best" and "early_stopping" name the same metric and that it is measured. Checks that evaluations
/// take place if early stopping needs them.
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

/// Checks that each file of optimizer states has a file with the matching weights or rows.
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

std::optional<int64_t> SolverSection::eval_batches() const {
  if (max_eval_batches) return max_eval_batches;
  if (max_eval_samples) return (*max_eval_samples + eval_batch() - 1) / eval_batch();
  return {};
}

Schema<SolverSection> solver_schema() {
  using S = SolverSection;
  return Schema<S>("solver")
      .opt("lr_policy", &S::lr_policy, "the optimizer section contains the learning rate schedule")
      .opt("display", &S::display, "iterations between progress lines; 0: none", at_least(0))
      .opt("tensorboard", &S::tensorboard,
           "also write the numbers of metrics.jsonl to TensorBoard event files in the run folder")
      .opt("max_iter", &S::max_iter, "iterations to train", at_least(1))
      .opt("num_epochs", &S::num_epochs, "number of passes over the training data; replaces max_iter", at_least(1))
      .opt("snapshot", &S::snapshot, "iterations between snapshots; 0: one snapshot at the end", at_least(0))
      .opt("snapshot_delta", &S::snapshot_delta,
           "iterations between deltas, which are files with the changes since the last snapshot or delta; 0: no "
           "deltas",
           at_least(0))
      .part("publish", &S::publish, publish_schema(),
            "publishes each delta, and each full model that deltas build on, through Kafka: see "
            "[publish](continuous_training.md#publish)",
            false)
      .opt("snapshot_prefix", &S::snapshot_prefix,
           "prefix of the names of model files; default: models/ in the run folder")
      .opt("replace_models", &S::replace_models,
           "true: models of other runs at snapshot_prefix may be overwritten even if their run folders have no copy; "
           "false: overwriting them is an error")
      .opt("final_snapshot", &S::final_snapshot,
           "save the model at the end; false: for runs that only measure "
           "speed or metrics")
      .opt("snapshot_opt_states", &S::snapshot_opt_states,
           "save optimizer states with each model, to load with dense_opt_states_file and sparse_opt_states_file. "
           "Checkpoints always contain optimizer states")
      .opt("model_format", &S::model_format,
           "layout of tables in model files: \"v2\", one file per table, for HugeCTR 2.x and 3.0; \"v3\", one "
           "folder per table, for later versions. Both layouts can be loaded")
      .part("checkpoint", &S::checkpoint, checkpoint_schema(),
            "when and where to save checkpoints, from which --resume continues bit for bit", false)
      .need("batchsize", &S::batchsize, "samples of one iteration over all GPUs", between(1, 1 << 30))
      .opt("batchsize_eval", &S::batchsize_eval, "samples of one evaluation batch; default: batchsize",
           between(1, 1 << 30))
      .opt("gpu", &S::gpu,
           "GPUs to train on, one rank per GPU: [0, 1] for one process, [[0, 1], [0, 1]] for two processes of mpirun. "
           "The processes of a host divide a flat list equally. \"all\": all GPUs for one process, or one GPU per "
           "process of a host. On the CPU each GPU stands for a rank, which is a thread; \"all\" means one rank")
      .alias("vvgpu")
      .opt("dense_model_file", &S::dense_model_file, "file of the dense weights to start from")
      .alias("dense model_file")
      .alias("model_file")
      .opt("sparse_model_file", &S::sparse_model_file,
           "files of the embedding tables to start from, one per embedding; \"\": initial values")
      .opt("dense_opt_states_file", &S::dense_opt_states_file,
           "file of optimizer states of the dense weights in dense_model_file")
      .opt("sparse_opt_states_file", &S::sparse_opt_states_file,
           "files of optimizer states of the rows in sparse_model_file, one per embedding")
      .opt("load_layers", &S::load_layers,
           "layers to load from dense_model_file, named by their first top; the file may come from another "
           "network; default: all layers")
      .opt("combine_models", &S::combine_models,
           "true: the files to start from may belong to different models; false: different models are an error")
      .list("pretrained", &S::pretrained, pretrained_schema(), "pretrained vectors for rows of tables", false)
      .opt("frozen", &S::frozen,
           "layers, named by their first top, and embeddings that are not trained: their weights and rows keep the "
           "initial or loaded values")
      .opt("eval_interval", &S::eval_interval, "iterations between evaluations; 0: none", at_least(0))
      .opt("max_eval_batches", &S::max_eval_batches, "number of batches of one evaluation; default: the whole set",
           at_least(0))
      .alias("eval_batches")
      .opt("max_eval_samples", &S::max_eval_samples,
           "number of samples of one evaluation; replaces "
           "max_eval_batches",
           at_least(0))
      .opt("eval_metrics", &S::eval_metrics, "the metrics of an evaluation: see [eval_metrics](#eval_metrics)")
      .opt("auc_threshold", &S::auc_threshold, "another spelling of the threshold in \"AUC:<threshold>\"",
           between(0, 1))
      .part("group_by", &S::group_by, group_schema(),
            "the sparse input that holds the group of a sample, for GroupedAUC", false)
      .part("early_stopping", &S::early_stopping, early_stopping_schema(),
            "ends training when a metric stops improving, and keeps the model of the best evaluation", false)
      .opt("export_predictions_prefix", &S::export_predictions_prefix,
           "prefix of files to which each evaluation writes its predictions and labels: "
           "<prefix>_prediction_<iteration> and <prefix>_label_<iteration>, numbers separated by blanks, in the "
           "order of the samples")
      .opt("input_key_type", &S::input_key_type,
           "width of keys in data and model files. Default: detected from the data files; model files use the "
           "width of the data's keys: I32 for Norm, Raw and Parquet data with 32-bit keys, otherwise I64")
      .opt("i64_input_key", &S::i64_input_key, "another spelling of input_key_type: true is I64, false is I32")
      .opt("seed", &S::seed, "seed of all random numbers: equal seeds give equal models", Range{})
      .opt("cuda_graph", &S::cuda_graph,
           "true: record the step as a CUDA graph; false: launch each kernel separately, with the same results")
      .alias("use_cuda_graph")
      .opt("mixed_precision", &S::mixed_precision,
           "type of activations: \"fp16\" or true: fp16 with a dynamic loss scale; a number: fp16 with this loss "
           "scale; \"bf16\"; or \"fp8\": bf16 with the large GEMMs of training in FP8. Weights, rows and optimizer "
           "states stay fp32. See [mixed precision](mixed_precision.md)")
      .opt("fp8_least_width", &S::fp8_least_width,
           "with mixed_precision \"fp8\": minimum number of inputs and minimum number of outputs of a fully "
           "connected layer that uses FP8 GEMMs; default: 2048",
           at_least(16))
      .opt("use_mixed_precision", &S::use_mixed_precision,
           "another spelling of mixed_precision; the loss scale is in scaler")
      .opt("scaler", &S::scaler, "the loss scale of use_mixed_precision; default: a dynamic one", more_than(0))
      .opt("exchange_precision", &S::exchange_precision,
           "type in which GPUs exchange embedding vectors and their gradients; default: the type of activations. With "
           "fp16 the gradients have a dynamic loss scale, and steps whose gradients overflow are skipped and counted")
      .opt("enable_tf32_compute", &S::enable_tf32_compute, "run GEMMs on a GPU in TF32 instead of fp32")
      .opt("fp32_products", &S::fp32_products,
           "how a GPU computes fp32 GEMMs: \"fp32\", \"tf32\" (enable_tf32_compute), or \"tf32x3\", which splits "
           "each operand into two TF32 numbers and adds three GEMMs if that is faster; each product of two "
           "elements has a relative error below 2^-21. The CPU always computes in fp32")
      .opt("algorithm_search", &S::algorithm_search,
           "on a GPU, measure up to eight library algorithms for each GEMM at the start and use the fastest. "
           "Choices are stored in a file, and later runs use them without measuring. false, the default: use the "
           "library's first choice")
      .alias("use_algorithm_search")
      .opt("algorithm_file", &S::algorithm_file,
           "file for the choices of algorithm_search; default: a file in ~/.cache/huge_ctr for each GPU model and "
           "library version")
      .opt("on_nan", &S::on_nan,
           "what to do when a loss or a gradient is NaN or infinite: \"stop\" ends training without saving the "
           "model; \"skip\" skips and counts the step, like a step whose fp16 gradients overflow")
      .opt("clip_gradient_norm", &S::clip_gradient_norm,
           "maximum norm of the vector of all dense gradients, summed over ranks; gradients with a larger norm are "
           "scaled down. Excludes gradients of tables; default: no limit",
           more_than(0))
      .opt("clip_gradient_value", &S::clip_gradient_value,
           "maximum absolute value of each element of a gradient. Applies to gradients of dense weights, after "
           "clip_gradient_norm, and to row gradients, summed over the batch; default: no limit",
           more_than(0))
      .opt("compatibility", &S::compatibility,
           "selects HugeCTR's arithmetic where it differs: see "
           "[compatibility](#compatibility)")
      .opt("placement", &S::placement,
           "with several ranks: the placement of rows for embeddings without "
           "\"placement\"")
      .opt("placement_file", &S::placement_file,
           "the plan.json of an earlier run on the same number of ranks, which contains the placement of rows. "
           "Default: training makes a plan at the start and writes it to the run folder")
      .part("table_memory", &S::table_memory, table_memory_schema(),
            "memory limits for table rows on a GPU and, for rows that do not fit there, in host memory and on disk",
            false)
      .ignored("all_reduce_algo", "the program chooses how gradients are summed")
      .ignored("plan_file", "the program makes its own plan, and \"placement_file\" can load a plan")
      .ignored("device_layout", "ranks have the order of \"gpu\"")
      .ignored("enable_overlap", "the next batch is always prepared during the current step")
      .ignored("holistic_cuda_graph", "\"cuda_graph\" records the whole step")
      .ignored("grouped_all_reduce", "the program chooses how gradients are summed")
      .ignored("train_intra_iteration_overlap", "independent work always runs concurrently")
      .ignored("train_inter_iteration_overlap", "independent work always runs concurrently")
      .ignored("eval_intra_iteration_overlap", "independent work always runs concurrently")
      .ignored("eval_inter_iteration_overlap", "independent work always runs concurrently")
      .ignored("num_iterations_statistics", "\"frequent_keys\" of an embedding selects the replicated rows")
      .ignored("repeat_dataset", "\"max_iter\" repeats the data as needed, \"num_epochs\" sets the number of passes")
      .ignored("use_embedding_collection", "similar embeddings always share kernel launches")
      .ignored("gen_loss_summary", "losses are in the log and in metrics.jsonl")
      .ignored("perf_logging", "the log is the same for all models")
      .ignored("is_dlrm", "the layers define the model")
      .ignored("model_name", "a model is identified by its files")
      .refused("metrics_spec", "\"eval_metrics\": [\"AUC:0.8\"] names a metric and the value at which training ends")
      .refused("kafka_brokers", "\"publish\": {\"brokers\": ...} publishes deltas")
      .refused("kafka_brockers", "\"publish\": {\"brokers\": ...} publishes deltas")
      .refused("learning_rate", kOfOptimizer)
      .refused("lr", kOfOptimizer)
      .refused("warmup_steps", kOfOptimizer)
      .refused("decay_start", kOfOptimizer)
      .refused("decay_steps", kOfOptimizer)
      .refused("decay_power", kOfOptimizer)
      .refused("end_lr", kOfOptimizer)
      .closed()
      .together([](S& s, const std::string& pointer, Problems& problems) {
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
          problems.note(
              pointer + "/compatibility",
              "evaluation_continues has no effect: max_eval_batches is not set, so each evaluation reads the whole "
              "set");
        if (s.compatibility.drop_partial_batches && s.max_iter)
          problems.note(pointer + "/compatibility",
                        "drop_partial_batches has no effect with max_iter: the last batch of the set is filled up from "
                        "the start of the set");
        check_metrics(s.eval_metrics, s.group_by, pointer, problems);
        check_best(s, pointer, problems);
        check_opt_states(s, pointer, problems);
      });
}

}  // namespace hctr
