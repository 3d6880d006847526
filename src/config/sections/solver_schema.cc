// The fields of the solver section.
#include "config/sections/solver_checks.h"
#include "config/sections/solver_section.h"

namespace hctr {
namespace {

constexpr const char* kOfOptimizer = "this field belongs to the optimizer section";

void add_length_and_progress(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema.opt("lr_policy", &S::lr_policy, "the optimizer section contains the learning rate schedule")
      .opt("display", &S::display, "iterations between progress lines; 0: none", at_least(0))
      .opt("tensorboard", &S::tensorboard,
           "also write the numbers of metrics.jsonl to TensorBoard event files in the run folder")
      .opt("max_iter", &S::max_iter, "iterations to train", at_least(1))
      .opt("num_epochs", &S::num_epochs, "number of passes over the training data; replaces max_iter", at_least(1));
}

void add_saved_models(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema.opt("snapshot", &S::snapshot, "iterations between snapshots; 0: one snapshot at the end", at_least(0))
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
            "when and where to save checkpoints, from which --resume continues bit for bit", false);
}

void add_batch_sizes_and_gpus(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema.need("batchsize", &S::batchsize, "samples of one iteration over all GPUs", between(1, 1 << 30))
      .opt("batchsize_eval", &S::batchsize_eval, "samples of one evaluation batch; default: batchsize",
           between(1, 1 << 30))
      .opt("gpu", &S::gpu,
           "GPUs to train on, one rank per GPU: [0, 1] for one process, [[0, 1], [0, 1]] for two processes of mpirun. "
           "The processes of a host divide a flat list equally. \"all\": all GPUs for one process, or one GPU per "
           "process of a host. On the CPU each GPU stands for a rank, which is a thread; \"all\" means one rank")
      .alias("vvgpu");
}

void add_initial_weights(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema.opt("dense_model_file", &S::dense_model_file, "file of the dense weights to start from")
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
           "initial or loaded values");
}

void add_evaluation(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema.opt("eval_interval", &S::eval_interval, "iterations between evaluations; 0: none", at_least(0))
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
           "order of the samples");
}

void add_keys_and_recording(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema
      .opt("input_key_type", &S::input_key_type,
           "width of keys in data and model files. Default for data files: detected. Default for model files: I32 if "
           "the data are Norm, Raw or Parquet and have 32-bit keys, and no loaded key needs 64 bits; otherwise I64")
      .opt("i64_input_key", &S::i64_input_key, "another spelling of input_key_type: true is I64, false is I32")
      .opt("seed", &S::seed, "seed of all random numbers: equal seeds give equal models", Range{})
      .opt("cuda_graph", &S::cuda_graph,
           "true: record the step as a CUDA graph; false: launch each kernel separately, with the same results")
      .alias("use_cuda_graph");
}

void add_precision(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema
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
           "fp16 the gradients have a dynamic loss scale, and steps whose gradients overflow are skipped and counted");
}

void add_gemms(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema.opt("enable_tf32_compute", &S::enable_tf32_compute, "run GEMMs on a GPU in TF32 instead of fp32")
      .opt("fp32_products", &S::fp32_products,
           "how a GPU computes fp32 GEMMs: \"fp32\", \"tf32\" (enable_tf32_compute), or \"tf32x3\", which splits each "
           "operand into two TF32 numbers and adds the results of three GEMMs, where this is faster than fp32; each "
           "product of two elements has a relative error below 2^-21. The CPU always computes in fp32")
      .opt("algorithm_search", &S::algorithm_search,
           "on a GPU, measure up to eight library algorithms for each GEMM at the start and use the fastest. "
           "Choices are stored in a file, and later runs use them without measuring. false, the default: use the "
           "library's first choice")
      .alias("use_algorithm_search")
      .opt("algorithm_file", &S::algorithm_file,
           "file for the choices of algorithm_search; default: a file in ~/.cache/huge_ctr for each GPU model and "
           "library version");
}

void add_gradients(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema
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
           more_than(0));
}

void add_tables(Schema<SolverSection>& schema) {
  using S = SolverSection;
  schema
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
            false);
}

void add_ignored(Schema<SolverSection>& schema) {
  schema.ignored("all_reduce_algo", "the program chooses how gradients are summed")
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
      .ignored("model_name", "a model is identified by its files");
}

void add_refused(Schema<SolverSection>& schema) {
  schema.refused("metrics_spec", "\"eval_metrics\": [\"AUC:0.8\"] names a metric and the value at which training ends")
      .refused("kafka_brokers", "\"publish\": {\"brokers\": ...} publishes deltas")
      .refused("kafka_brockers", "\"publish\": {\"brokers\": ...} publishes deltas")
      .refused("learning_rate", kOfOptimizer)
      .refused("lr", kOfOptimizer)
      .refused("warmup_steps", kOfOptimizer)
      .refused("decay_start", kOfOptimizer)
      .refused("decay_steps", kOfOptimizer)
      .refused("decay_power", kOfOptimizer)
      .refused("end_lr", kOfOptimizer);
}

}  // namespace

Schema<SolverSection> solver_schema() {
  Schema<SolverSection> schema("solver");
  // The manual lists the fields in this order.
  add_length_and_progress(schema);
  add_saved_models(schema);
  add_batch_sizes_and_gpus(schema);
  add_initial_weights(schema);
  add_evaluation(schema);
  add_keys_and_recording(schema);
  add_precision(schema);
  add_gemms(schema);
  add_gradients(schema);
  add_tables(schema);
  add_ignored(schema);
  add_refused(schema);
  schema.closed().together(check_solver);
  return schema;
}

}  // namespace hctr
