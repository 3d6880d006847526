// Displays and evaluations of a run.
#include <algorithm>
#include <cmath>
#include <utility>

#include "train/run.h"

namespace hctr {

void Run::display(double rate) {
  const double loss = last_loss();
  const auto counts = model_->table_counts();
  const double mean_loss = pipeline_->loss_sum().mean();
  if (comm_.rank() == 0) {
    const Device device = runtime_.device();
    TrainedFigures figures{.iteration = now_.iterations,
                           .samples = now_.samples,
                           .loss = loss,
                           .mean_loss = mean_loss,
                           .learning_rate = rate,
                           .reader_seconds = pipeline_->reader_seconds(),
                           .host_memory = used_memory(Device{})};
    figures.epoch = epoch();
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
  now_.loss = loss;
  ask(hooks_.displayed, rate, mean_loss);
}

void Run::ask(const std::function<bool(const TrainerState&)>& hook, double rate, double mean_loss) {
  if (!hook) return;
  const bool goes_on = comm_.rank() != 0 || hook(state_with(now_.loss, mean_loss, rate));
  stopping_ = comm_.any(!goes_on) || stopping_;
}

TrainerState Run::state_with(double loss, double mean_loss, double rate) const {
  TrainerState state{.iteration = now_.iterations,
                     .samples = now_.samples,
                     .passes = now_.epochs,
                     .epoch = epoch(),
                     .loss = loss,
                     .mean_loss = mean_loss,
                     .learning_rate = rate,
                     .samples_per_second = report_->rate(),
                     .seconds = report_->seconds(),
                     .metrics = now_.metrics,
                     .undefined = now_.undefined,
                     .evaluated_at = now_.evaluated_at};
  return state;
}

TrainerState Run::state() {
  const double loss = last_loss();
  return state_with(loss, pipeline_->loss_sum().mean(), next_rate());
}

std::optional<double> Run::epoch() const {
  const int64_t in_set = pipeline_->samples_in_set();
  if (in_set <= 0 || pipeline_->samples_estimated()) return std::nullopt;
  return static_cast<double>(now_.samples) / static_cast<double>(in_set);
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
    return report_->event("The evaluation is not finished.");
  }
  left_evaluation_.reset();
  note_metrics(*result);
  for (const Metric& metric : config_.solver.eval_metrics.metrics)
    if (const auto found = now_.metrics.find(metric.type->name);
        metric.stop_at && found != now_.metrics.end() && metric.type->reached(found->second, *metric.stop_at))
      now_.stopped_at = metric.word();
  const bool better = note_best();
  report_evaluation(*result, report_->seconds() - before);
  if (now_.stopped_at) report_->event(cat("Reached ", *now_.stopped_at, ": training ends."));
  stop_early(better);
  ask(hooks_.evaluated, scheduled_rate(schedule_, now_.iterations), pipeline_->loss_sum().mean());
}

void Run::note_metrics(const Evaluator::Result& result) {
  now_.evaluated_at = now_.iterations;
  now_.metrics = result.metrics;
  now_.undefined = result.undefined;
}

void Run::report_evaluation(const Evaluator::Result& result, double took) {
  now_.eval_seconds += took;
  matches_ = result.matches;
  report_->evaluated(now_.iterations, result, took);
  warn_of_undefined_metrics();
  // reports counts only at evaluations, because table_rows() is collective and would make ranks wait at every display
  report_->tables(now_.iterations, model_->table_rows(), false);
}

std::map<std::string, double> Run::evaluate_now() {
  report_->go_on();
  check_finite(last_loss());
  const double before = report_->seconds();
  const auto result = save_on_error(cat("evaluating after iteration ", now_.iterations),
                                    [&] { return evaluator_->run(now_.iterations, options_.stop); });
  if (result) {
    note_metrics(*result);
    report_evaluation(*result, report_->seconds() - before);
  }
  report_->pause();
  return result ? result->metrics : std::map<std::string, double>();
}

void Run::stop_early(bool better) {
  const EarlyStopping& early = config_.solver.early_stopping;
  if (!early.given) return;
  if (better && saves_model() && saver_.save_best(now_.iterations, pipeline_->key_bytes()))
    report_->event(
        cat("The best ", early.metric, " so far: the model is saved as ", saver_.best()->files.front().string()));
  if (now_.best_iteration < 0 || now_.evaluations_since_best < early.patience || now_.stopped_at) return;
  now_.stopped_at = "early_stopping";
  report_->event(cat("The ", early.metric, " of iteration ", now_.best_iteration, " has not improved in ",
                     now_.evaluations_since_best, now_.evaluations_since_best == 1 ? " evaluation" : " evaluations",
                     ": training ends."));
}

bool Run::note_best() {
  const MetricType* type = config_.solver.best_metric();
  if (!type || !has_trained()) return false;
  const auto found = now_.metrics.find(type->name);
  if (found != now_.metrics.end() && std::isnan(found->second)) {  // an undefined metric is no better and no worse
    ++now_.undefined_evaluations;
    return false;
  }
  if (found == now_.metrics.end() || !type->improves(found->second, now_.best)) {
    // Counts only regular evaluations. An extra evaluation at the end is excluded, because a run with a larger max_iter
    // would not make it.
    if (every_.eval > 0 && now_.iterations % every_.eval == 0) ++now_.evaluations_since_best;
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
                                                   ? "are ignored by early stopping and cannot be the best"
                                                   : "cannot be the best"
                                             : cat("cannot reach \"", metric.word(), "\"")));
  }
}

void Run::report_skipped() {
  const auto scale = model_->loss_scale();
  if (!scale || scale->skipped == now_.skipped_steps) return;
  const int64_t more = scale->skipped - now_.skipped_steps;
  report_->event(cat(more, more == 1 ? " step" : " steps",
                     " skipped because of infinite or NaN gradients; the loss scale is ", scale->scale));
  now_.skipped_steps = scale->skipped;
}

}  // namespace hctr
