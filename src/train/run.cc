#include "train/run.h"

#include <limits>
#include <utility>

#include "core/base/host_name.h"
#include "core/base/progress.h"
#include "formats/catalog/encoding_contents.h"
#include "launch/attempt.h"
#include "net/graph/fp8_scales.h"
#include "score/batch_reading.h"
#include "train/check_report.h"
#include "train/placement_plan.h"
#include "train/run_about.h"

namespace hctr {
namespace {

/// The part of a log line that says how many weights have GEMMs in FP8; empty if there are none.
std::string products_text(const Graph& graph) {
  const size_t products = fp8_products(graph);
  return products == 0 ? "" : cat(", products of ", products, products == 1 ? " weight" : " weights", " in FP8");
}

}  // namespace

Run::Run(const RunOptions& options, Config& config, const RankPlace& rank, RunFolder& folder, const ResumePoint* from,
         const Log& log)
    : options_(options.train),
      hooks_(options.hooks),
      config_(config),
      log_(log),
      comm_(rank.comm),
      folder_(folder),
      runtime_(rank.device, {.threads = rank.threads,
                             .seed = config.solver.seed.value,
                             .tf32 = config.solver.enable_tf32_compute,
                             .tf32x3 = config.solver.tf32x3(),
                             .sync_launches = options_.sync_launches,
                             .several_ranks = comm_.size() > 1,
                             .row_memory = row_memory_limits(config.solver.table_memory, rank.device, comm_)}),
      encoding_contents_(encoding_contents(config.data)),
      layout_(batch_layout(config, samples_of_rank(config.solver.batchsize, comm_.size()), rank.device)),
      eval_layout_(batch_layout(config, samples_of_rank(config.solver.eval_batch(), comm_.size()), rank.device)),
      from_(from),
      exact_(from && from->exact_for(config, comm_.size())),
      placements_(make_placements(config, runtime_, comm_, folder, log, exact_ ? from->plan() : nullptr)),
      model_(make_model()),
      saver_(config, comm_, *model_, folder.path(), log),
      schedule_(config.optimizer.hyper),
      device_(comm_.size() == 1 ? describe(rank.device)
                                : cat(comm_.size(), " ranks; rank 0: ", describe(rank.device))) {
  if (from)
    load_checkpoint();
  else
    model_->load(log);
  start_following();
  peers_ = rank.peers;
  pipeline_ = make_pipeline(read_progress());
  resolve_schedule(schedule_, steps_of_run());
  if (model_->loss_scale()) most_not_finite_ = kMostSkipped;  // the model skips steps with NaN or infinite gradients
  if (!config.data.eval_source.empty())
    evaluator_ = std::make_unique<Evaluator>(config, comm_, *model_, eval_layout_, log, now_.eval_reader);
  else
    log.info("No eval_source: nothing is evaluated.");
  choose_algorithms();
  expect_one_data_set();
  saver_.set_origin({folder_.run(), data_json(), folder_.path().string()});
  if (options_.attempt && options_.attempt->number > 0) saver_.replace_others();
  saver_.start_publishing(now_.iterations);
  if (comm_.rank() == 0) expect_fitting_data();
  if (from && comm_.rank() == 0) expect_same_data(*from, data_json(), config);
  expect_memory();
  if (runtime_.device().is_cuda()) model_->hold_memory_to_save();
  every_ = {config.solver.display, config.solver.eval_interval, config.solver.snapshot};
  end_ = end_of_config();
  comm_.barrier();  // waits for the slowest rank's set-up, so that the time limit of a step excludes it
}

std::unique_ptr<Replica> Run::make_model() {
  return std::make_unique<Replica>(config_, runtime_, comm_,
                                   ReplicaShape{.samples = layout_.shape.samples,
                                                .eval_samples = eval_layout_.shape.samples,
                                                .ring_size = StepPipeline::kBuffers,
                                                .placements = placements_});
}

std::unique_ptr<StepPipeline> Run::make_pipeline(const ReadProgress& progress) {
  return std::make_unique<StepPipeline>(config_, comm_, *model_, layout_, log_, ReadSetup{progress, feed_, peers_});
}

void Run::begin() {
  const SolverSection& solver = config_.solver;
  const int64_t per_epoch = pipeline_->samples_in_set();
  int64_t total = 0;
  if (__builtin_mul_overflow(solver.max_iter ? *solver.max_iter : *solver.num_epochs,
                             solver.max_iter ? solver.batchsize : per_epoch, &total))
    total = std::numeric_limits<int64_t>::max();
  const char* about = pipeline_->samples_estimated() ? "about " : "";
  const std::string samples =
      cat(solver.max_iter ? "" : about, with_unit_prefix(static_cast<double>(total)), " samples");
  log_.info("Training on ",
            feed_ ? cat("the files that arrive in '", config_.data.source, "'",
                        solver.max_iter ? cat(", ", samples, " at most") : std::string(), ", ")
                  : cat(samples, " (", about, with_unit_prefix(static_cast<double>(per_epoch)), " in the set), "),
            model_->dense_parameters(), " dense parameters, activations ", name_of(solver.mixed_precision.activations),
            products_text(model_->graph()), ".",
            folder_.path().empty() ? "" : cat(" Run folder: ", folder_.path().string()));
  const Device device = runtime_.device();
  std::optional<double> gpu_bytes;
  if (device.is_cuda()) gpu_bytes = static_cast<double>(free_memory(device) + used_memory(device));
  if (comm_.rank() == 0)
    for (const std::string& sentence : budgets_too_small(memory_bill(config_, comm_.size(), {}), gpu_bytes))
      log_.warning(sentence, "; training will end when rows do not fit");
  if (!folder_.path().empty())
    folder_.write_start(data_json(), evaluator_ ? to_json(evaluator_->data_fingerprint()) : Json(),
                        about_start(options_, device_, comm_.size(), runtime_.options().threads));
  report_ = std::make_unique<Reporter>(log_, folder_,
                                       ReporterOptions{.lines = options_.lines,
                                                       .tensorboard = solver.tensorboard,
                                                       .prometheus = options_.metrics_file,
                                                       .progress = options_.surroundings.progress,
                                                       .silent = comm_.rank() != 0},
                                       total, now_.iterations);
  checkpoints_ = std::make_unique<Checkpointer>(solver.checkpoint, comm_, runtime_, *report_, saved_checkpoint());
  say_what_increments_save();
  if (from_) {
    report_->go_on(now_.report);
    pipeline_->start_loss_sum(now_.loss_sum);
  }
  if (options_.profile && comm_.rank() == 0)
    profile_ = std::make_unique<StepProfile>(
        config_, runtime_, *model_, *pipeline_, folder_,
        solver.max_iter ? std::optional(*solver.max_iter - now_.iterations) : std::nullopt);
  if (folder_.metrics_bytes() > 0)
    report_->add_line(Json(Json::Object{{"kind", "resume"}, {"iteration", now_.iterations}}));
  else
    report_->add_line(Json(Json::Object{{"kind", "start"},
                                        {"schema", kRunSchema},
                                        {"run", folder_.run()},
                                        {"device", device_},
                                        {"samples_in_set", per_epoch},
                                        {"samples_in_all", total}}));
}

int64_t Run::steps_of_run() const {
  const SolverSection& solver = config_.solver;
  if (solver.max_iter) return *solver.max_iter;
  const int64_t samples = pipeline_->samples_in_set(), batch = solver.batchsize;
  const int64_t of_epoch = samples / batch + (samples % batch > 0 && !solver.compatibility.drop_partial_batches);
  int64_t steps = 0;
  return __builtin_mul_overflow(*solver.num_epochs, of_epoch, &steps) ? std::numeric_limits<int64_t>::max() : steps;
}

void Run::expect_one_data_set() {
  const auto sizes = comm_.gather(cat(pipeline_->samples_in_set()), 0), hosts = comm_.gather(host_name(), 0);
  for (size_t r = 1; r < sizes.size(); ++r)
    if (sizes[r] != sizes[0])
      throw Error(Kind::data, cat("'", config_.data.source, "' holds ", sizes[r], " samples for rank ", r, " on ",
                                  hosts[r], " and ", sizes[0], " for rank 0 on ", hosts[0],
                                  ": all processes must see the same files, or equal copies"));
}

}  // namespace hctr
