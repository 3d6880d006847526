#include "train/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/host_name.h"
#include "core/base/progress.h"
#include "core/comm/rank_list.h"
#include "formats/catalog/encoding_contents.h"
#include "net/graph/fp8_scales.h"
#include "train/attempt.h"
#include "train/check_report.h"
#include "train/placement_plan.h"
#include "train/run_about.h"
#include "train/trainer_parts.h"

namespace hctr {
namespace {

constexpr std::chrono::seconds kUntilSaid(20);
constexpr int kRoundsUntilSaid = kUntilSaid / kToWaitForData;

bool every(int64_t interval, int64_t iteration) { return interval > 0 && iteration % interval == 0; }

/// What a line on activations adds where products have another type.
std::string products_text(const Graph& graph) {
  const size_t products = fp8_products(graph);
  return products == 0 ? "" : cat(", products of ", products, products == 1 ? " weight" : " weights", " in FP8");
}

}  // namespace

Run::Run(const TrainOptions& options, const Config& config, const RankPlace& rank, RunFolder& folder,
         const ResumePoint* from, const Log& log)
    : options_(options),
      config_(config),
      log_(log),
      comm_(rank.comm),
      folder_(folder),
      runtime_(rank.device, {.threads = rank.threads,
                             .seed = config.solver.seed.value,
                             .tf32 = config.solver.enable_tf32_compute,
                             .tf32x3 = config.solver.tf32x3(),
                             .sync_launches = options.sync_launches,
                             .several_ranks = comm_.size() > 1,
                             .row_memory = row_memory_limits(config.solver.table_memory, rank.device, comm_)}),
      encoding_contents_(encoding_contents(config.data)),
      layout_(batch_layout(config, samples_of_rank(config.solver.batchsize, comm_.size()), rank.device)),
      eval_layout_(batch_layout(config, samples_of_rank(config.solver.eval_batch(), comm_.size()), rank.device)),
      from_(from),
      exact_(from && from->exact_for(config, comm_.size())),
      placements_(make_placements(config, runtime_, comm_, folder, log, exact_ ? from->plan() : nullptr)),
      model_(config, runtime_, comm_, layout_.shape.samples, eval_layout_.shape.samples, StepPipeline::kBuffers,
             placements_),
      saver_(config, comm_, model_, folder.path(), log),
      schedule_(config.optimizer.hyper),
      device_(comm_.size() == 1 ? describe(rank.device)
                                : cat(comm_.size(), " ranks; rank 0: ", describe(rank.device))) {
  if (from)
    load_checkpoint();
  else
    model_.load(log);
  start_following();
  pipeline_ =
      std::make_unique<StepPipeline>(config, runtime_, comm_, model_, layout_, log, read_progress(), feed_, rank.peers);
  resolve_schedule(schedule_, steps_of_run());
  if (model_.loss_scale()) most_not_finite_ = kMostSkipped;  // such steps are skipped
  if (!config.data.eval_source.empty())
    evaluator_ = std::make_unique<Evaluator>(config, runtime_, comm_, model_, eval_layout_, log, now_.eval_reader);
  else
    log.info("No eval_source: nothing is evaluated.");
  choose_algorithms();
  expect_one_data_set();
  saver_.set_origin({folder_.run(), data_json(), folder_.path().string()});
  if (options.attempt && options.attempt->number > 0) saver_.replace_others();
  if (comm_.rank() == 0) expect_one_numbering();
  if (comm_.rank() == 0) expect_one_key_rule();
  if (from && comm_.rank() == 0) expect_same_data(*from, data_json(), config);
  expect_memory();
  if (runtime_.device().is_cuda()) model_.hold_memory_to_save();
  comm_.barrier();  // set-up times differ between ranks; time limits of steps start after it
}

TrainSummary Run::train() {
  begin();
  // A signal may have left the evaluation after the step of the checkpoint.
  if (from_ && every(config_.solver.eval_interval, now_.iterations) && now_.evaluated_at != now_.iterations) evaluate();
  while (!finished() && !stopping_) {
    const double rate = scheduled_rate(schedule_, now_.iterations + 1);
    const auto samples = save_on_error(cat("training iteration ", now_.iterations + 1), [&] { return step(rate); });
    if (!samples) {
      if (stopping_) break;  // before there was a batch
      ++now_.epochs;
      if (now_.iterations == 0 && !feed_) expect_trained();  // another pass would give no batch either
      if (!finished())
        save_on_error("starting another pass over the data",
                      [&] { run_on_all_ranks(comm_, [&] { pipeline_->restart(); }); });
      continue;
    }
    now_.samples += *samples;
    ++now_.iterations;
    trained_ = true;
    if (profile_)
      for (const std::string& line : profile_->after_step(waits_after(now_.iterations))) report_->event(line);
    save_on_error(cat("reporting or saving iteration ", now_.iterations), [&] { after_step(rate); });
  }
  return finish();
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
            feed_ ? cat("the files that come to '", config_.data.source, "'",
                        solver.max_iter ? cat(", ", samples, " at most") : std::string(), ", ")
                  : cat(samples, " (", about, with_unit_prefix(static_cast<double>(per_epoch)), " in the set), "),
            model_.dense_parameters(), " dense parameters, activations ", name_of(solver.mixed_precision.activations),
            products_text(model_.graph()), ". Run folder: ", folder_.path().string());
  const Device device = runtime_.device();
  std::optional<double> gpu_bytes;
  if (device.is_cuda()) gpu_bytes = static_cast<double>(free_memory(device) + used_memory(device));
  if (comm_.rank() == 0)
    for (const std::string& sentence : budgets_too_small(memory_bill(config_, comm_.size(), {}), gpu_bytes))
      log_.warning(sentence, "; training ends once rows have no room");
  if (!folder_.path().empty())
    folder_.write_start(data_json(), evaluator_ ? to_json(evaluator_->data_fingerprint()) : Json(),
                        about_start(options_, device_, comm_.size(), runtime_.options().threads));
  report_ = std::make_unique<Reporter>(log_, folder_,
                                       ReporterOptions{.lines = options_.lines,
                                                       .tensorboard = solver.tensorboard,
                                                       .prometheus = options_.metrics_file,
                                                       .progress = options_.surroundings.progress},
                                       total, now_.iterations);
  checkpoints_ = std::make_unique<Checkpointer>(solver.checkpoint, comm_, runtime_, *report_, saved_checkpoint());
  say_what_increments_save();
  if (from_) {
    report_->go_on(now_.report);
    pipeline_->start_loss_sum(now_.loss_sum);
  }
  if (options_.profile && comm_.rank() == 0)
    profile_ = std::make_unique<StepProfile>(
        config_, runtime_, model_, *pipeline_, folder_,
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

bool Run::finished() const {
  if (now_.stopped_at || (feed_ && now_.epochs > 0)) return true;
  return config_.solver.max_iter ? now_.iterations >= *config_.solver.max_iter
                                 : now_.epochs >= *config_.solver.num_epochs;
}

std::optional<int64_t> Run::step(double rate) {
  if (profile_) profile_->before_fetch();
  if (!fetch()) {
    if (profile_) profile_->pause();
    return std::nullopt;
  }
  if (profile_) profile_->before_step();
  return pipeline_->step(now_.iterations, rate);
}

bool Run::fetch() {
  using Fetched = StepPipeline::Fetched;
  for (int rounds = 1;; ++rounds) {
    std::optional<Error> failed;
    Fetched found = Fetched::end;
    try {
      found = pipeline_->fetch(options_.stop);
      expect_memory();
    } catch (...) {
      failed = current_error();
    }
    const bool diverged = pipeline_->steps_not_finite() > most_not_finite_ || pipeline_->spoiled();
    const bool stop = options_.stop && *options_.stop != 0, waits = found == Fetched::waiting;
    if (!comm_.any(failed || diverged || stop || waits || follow_news())) return found == Fetched::batch;
    if (comm_.any(diverged)) throw_diverged();
    throw_on_all_ranks(comm_, failed);
    stopping_ = comm_.any(stop);
    if (feed_ && !stopping_) {
      exchange_new_files(waits);
      if (comm_.any(waits)) continue;
      return found == Fetched::batch;
    }
    if (!comm_.any(waits || found == Fetched::stopped)) return found == Fetched::batch;
    if (stopping_) {
      report_->event("Data were being waited for.");
      return false;
    }
    if (rounds == kRoundsUntilSaid) say_who_waits(waits);
  }
}

void Run::expect_memory() {
  if (!options_.reserve) return;
  if (options_.reserve->released()) throw Error(Kind::device, std::string(kOutOfHostMemory));
  to_save_.grow_to(model_.bytes_to_save());
}

void Run::say_who_waits(bool waits) {
  const std::vector<std::string> waiting = comm_.gather(waits ? "1" : "", 0);
  std::set<int> ranks;
  for (size_t r = 0; r < waiting.size(); ++r)
    if (!waiting[r].empty()) ranks.insert(static_cast<int>(r));
  if (comm_.rank() == 0)
    report_->event(cat("Data are being waited for", comm_.size() > 1 ? cat(" by ", rank_list(ranks)) : "", ", for ",
                       kUntilSaid.count(), " s now; training goes on when they come."));
}

bool Run::waits_after(int64_t iteration) const {
  const SolverSection& solver = config_.solver;
  return every(solver.display, iteration) || every(solver.eval_interval, iteration) ||
         every(solver.snapshot, iteration) || every(solver.snapshot_delta, iteration) ||
         every(solver.checkpoint.every, iteration);
}

void Run::after_step(double rate) {
  const int64_t iteration = now_.iterations;
  report_->queued(now_.samples);
  if (every(config_.solver.display, iteration)) display(rate);
  if (every(config_.solver.eval_interval, iteration)) evaluate();
  if (every(config_.solver.snapshot, iteration) && !now_.stopped_at && has_trained()) {
    check_finite(last_loss());
    if (saver_.snapshot(iteration, pipeline_->key_bytes())) {
      const auto& files = saver_.last()->files;
      report_->event(
          cat("Snapshot: ", files.front().string(), files.size() > 1 ? cat(" and ", files.size() - 1, " more") : ""));
      report_unsaved();
    }
  } else if (every(config_.solver.snapshot_delta, iteration) && !now_.stopped_at && has_trained()) {
    check_finite(last_loss());
    saver_.save_delta(iteration, pipeline_->key_bytes());
  }
  saver_.poll_delta();
  checkpoints_->poll(iteration);
  // Last of all: what it has seen is not done again.
  if (checkpoints_->due(iteration) || now_.best_iteration == iteration) save_checkpoint();
}

void Run::display(double rate) {
  const double loss = last_loss();
  const auto counts = model_.table_counts();
  if (!folder_.path().empty()) {
    const Device device = runtime_.device();
    TrainedFigures figures{.iteration = now_.iterations,
                           .samples = now_.samples,
                           .loss = loss,
                           .mean_loss = pipeline_->loss_sum().mean(),
                           .learning_rate = rate,
                           .reader_seconds = pipeline_->reader_seconds(),
                           .host_memory = used_memory(Device{})};
    if (const int64_t in_set = pipeline_->samples_in_set(); in_set > 0 && !pipeline_->samples_estimated())
      figures.epoch = static_cast<double>(now_.samples) / static_cast<double>(in_set);
    if (device.is_cuda()) figures.gpu_memory = used_memory(device);
    figures.reads_from_gpu = share_of_reads(counts);
    figures.look_ahead = pipeline_->look_ahead();
    add_disk_figures(counts, figures);
    report_->trained(figures);
  }
  pipeline_->start_loss_sum();
  check_finite(loss);
  report_skipped();
  report_host_rows(counts);
  report_disk_rows(counts);
  report_->tables(now_.iterations, counts);
}

void Run::evaluate() {
  if (!evaluator_) return;
  check_finite(last_loss());
  const double before = report_->seconds();
  const ReaderPosition position = evaluator_->position();
  const auto result = save_on_error(cat("evaluating after iteration ", now_.iterations),
                                    [&] { return evaluator_->run(now_.iterations, options_.stop); });
  if (!result) {
    stopping_ = true;
    left_evaluation_ = position;
    return report_->event("The evaluation is left unfinished.");
  }
  now_.evaluated_at = now_.iterations;
  now_.metrics = result->metrics;
  now_.undefined = result->undefined;
  for (const Metric& metric : config_.solver.eval_metrics.metrics)
    if (const auto found = now_.metrics.find(metric.type->name);
        metric.stop_at && found != now_.metrics.end() && metric.type->reached(found->second, *metric.stop_at))
      now_.stopped_at = metric.word();
  const bool better = note_best();
  const double took = report_->seconds() - before;
  now_.eval_seconds += took;
  matches_ = result->matches;
  report_->evaluated(now_.iterations, *result, took);
  warn_of_undefined_metrics();
  report_->tables(now_.iterations, model_.table_rows(), false);  // not at displays: ranks would wait for each other
  if (now_.stopped_at) report_->event(cat("Reached ", *now_.stopped_at, ": training ends."));
  const EarlyStopping& early = config_.solver.early_stopping;
  if (!early.given) return;
  if (better && config_.solver.final_snapshot && saver_.save_best(now_.iterations, pipeline_->key_bytes()))
    report_->event(
        cat("The best ", early.metric, " so far: the model is saved as ", saver_.best()->files.front().string()));
  if (now_.best_iteration < 0 || now_.evaluations_since_best < early.patience || now_.stopped_at) return;
  now_.stopped_at = "early_stopping";
  report_->event(cat("The ", early.metric, " of iteration ", now_.best_iteration, " has not been improved in ",
                     now_.evaluations_since_best, now_.evaluations_since_best == 1 ? " evaluation" : " evaluations",
                     ": training ends."));
}

bool Run::note_best() {
  const MetricType* type = config_.solver.best_metric();
  if (!type || !has_trained()) return false;
  const auto found = now_.metrics.find(type->name);
  if (found != now_.metrics.end() && std::isnan(found->second)) {  // decides nothing
    ++now_.undefined_evaluations;
    return false;
  }
  if (found == now_.metrics.end() || !type->improves(found->second, now_.best)) {
    // One more at the end of a run does not count: a larger max_iter would have no evaluation there.
    if (every(config_.solver.eval_interval, now_.iterations)) ++now_.evaluations_since_best;
    return false;
  }
  now_.best = found->second;
  now_.best_iteration = now_.iterations;
  now_.best_metrics = now_.metrics;
  now_.evaluations_since_best = 0;
  return true;
}

void Run::warn_of_undefined_metrics() {
  const MetricType* best = config_.solver.best_metric();
  for (const Metric& metric : config_.solver.eval_metrics.metrics) {
    const std::string& name = metric.type->name;
    const auto why = now_.undefined.find(name);
    std::vector<std::string>& warned = now_.undefined_warned;
    if (why == now_.undefined.end() || (metric.type != best && !metric.stop_at) ||
        std::find(warned.begin(), warned.end(), name) != warned.end())
      continue;
    warned.push_back(name);
    report_->warning(cat(name, " is undefined: ", why->second, "; evaluations without it ",
                         metric.type == best ? config_.solver.early_stopping.given
                                                   ? "count neither for early stopping nor as the best"
                                                   : "do not count as the best"
                                             : cat("cannot reach \"", metric.word(), "\"")));
  }
}

void Run::report_skipped() {
  const auto scale = model_.loss_scale();
  if (!scale || scale->skipped == now_.skipped_steps) return;
  const int64_t more = scale->skipped - now_.skipped_steps;
  report_->event(cat(more, more == 1 ? " step" : " steps",
                     " skipped, whose gradients were infinite or not a number; the loss scale is ", scale->scale));
  now_.skipped_steps = scale->skipped;
}

int Run::stop_signal() {
  int largest = 0;
  for (const std::string& text : comm_.gather(cat(options_.stop ? options_.stop->load() : 0), 0))
    largest = std::max(largest, std::stoi(text));
  return std::stoi(comm_.broadcast(cat(largest), 0));
}

void Run::expect_one_data_set() {
  const auto sizes = comm_.gather(cat(pipeline_->samples_in_set()), 0), hosts = comm_.gather(host_name(), 0);
  for (size_t r = 1; r < sizes.size(); ++r)
    if (sizes[r] != sizes[0])
      throw Error(Kind::data, cat("'", config_.data.source, "' holds ", sizes[r], " samples for rank ", r, " on ",
                                  hosts[r], " and ", sizes[0], " for rank 0 on ", hosts[0],
                                  ": all processes must see the same files, or equal copies"));
}

Error Run::with_model(const Error& error, const std::string& what) {
  if (diverged_ || std::exchange(saved_after_error_, true)) return error;
  if (now_.iterations == 0) return error.with_context(what);
  if (options_.reserve) options_.reserve->release();
  try {
    note_unasked_model();
  } catch (const std::exception&) {  // the model is worth more than its note
  }
  const std::string saved = saver_.save_after_error(error, now_.iterations, pipeline_->key_bytes());
  try {
    if (saver_.last() && saver_.last()->iteration == now_.iterations) replace_unasked_models(false);
  } catch (const std::exception&) {
  }
  return error.with_context(cat(what, "; ", saved));
}

}  // namespace hctr
