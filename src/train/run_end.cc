// The end of a run: the summary and the last files.
#include "core/base/progress.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "net/model/table_counts.h"
#include "score/best_metrics.h"
#include "train/run.h"

namespace hctr {

TrainSummary Run::finish() {
  report_->go_on();
  ended_ = true;
  settle();
  const double seconds = report_->seconds() - now_.eval_seconds;
  const bool whole = !stopping_ || complete();
  if (whole) expect_trained();
  if (whole && now_.evaluated_at != now_.iterations) evaluate();
  const bool interrupted = stopping_ && (!whole || (evaluator_ && now_.evaluated_at != now_.iterations));
  const int signal = interrupted ? stop_signal() : 0;
  const bool in_checkpoint = interrupted && leave_stopped();
  const bool saves = saves_model() && has_trained() && !in_checkpoint;
  now_.skipped_records = pipeline_->skipped_records();
  warn_at_end();
  TrainSummary summary = summarize();
  summary.seconds = seconds;
  summary.samples_per_second = seconds > 0 ? static_cast<double>(now_.samples) / seconds : 0;
  summary.interrupted = interrupted;
  summary.stop_signal = signal;

  // If the run was interrupted, the last model is the result, because the run will resume. If not, the best model is
  // the result.
  saver_.finish_delta();
  const bool best_is_final = saver_.best() && !interrupted;
  if (best_is_final) {
    summary.best_iteration = saver_.best()->iteration;
    summary.best_metrics = now_.best_metrics;
  } else if (saves) {
    if (interrupted) note_unasked_model();
    save_final_model();
  }
  save_on_error("ending training", [&] { run_on_all_ranks(comm_, [&] { model_->check_keys(); }); });
  if (saves) {
    const ModelSaver::Saved& final_model = best_is_final ? *saver_.best() : *saver_.last();
    summary.model_files = final_model.files;
    if (comm_.rank() == 0 && !folder_.path().empty()) saver_.link_into(folder_.path(), final_model);
  }
  if (in_checkpoint) summary.checkpoint = checkpoint_path(config_.solver.checkpoint.folder, now_.iterations);
  if (in_checkpoint || best_is_final)
    replace_unasked_models(ModelOfStep::left_out);
  else if (saves)
    replace_unasked_models(interrupted ? ModelOfStep::unasked : ModelOfStep::result);
  // excludes the "end" line, which a resumed run removes
  if (comm_.rank() == 0) metrics_bytes_ = folder_.metrics_bytes();
  report_->add_line(Json(Json::Object{{"kind", "end"},
                                      {"iteration", summary.iterations},
                                      {"samples", summary.samples},
                                      {"loss", summary.final_loss},
                                      {"seconds", summary.seconds},
                                      {"interrupted", summary.interrupted}}));
  folder_.write_summary(summary);
  folder_.write_end(interrupted ? "stopped" : "finished");
  if (!interrupted) save_checkpoint(true);
  checkpoints_->finish();
  saver_.finish_publishing(interrupted);
  return summary;
}

void Run::warn_at_end() {
  report_skipped();
  warn_of_uncounted_losses();
  if (now_.skipped_records > 0)
    log_.warning(now_.skipped_records, now_.skipped_records == 1 ? " bad record was" : " bad records were", " skipped");
  warn_of_unmatched(matches_, "the last evaluation", log_);
  if (const MetricType* type = config_.solver.best_metric();
      type && now_.best_iteration < 0 && now_.undefined_evaluations > 0)
    log_.warning(type->name, " was undefined in every evaluation: ",
                 config_.solver.early_stopping.given ? "early stopping" : "\"keep_best\"",
                 " could not compare evaluations");
}

TrainSummary Run::summarize() {
  TrainSummary summary = summary_of(now_);
  summary.device = device_;
  summary.run_dir = folder_.path();
  summary.best_possible = best_metrics(config_);
  summary.tables = model_->table_counts();
  report_->tables(now_.iterations, summary.tables);
  for (auto& [name, counts] : summary.tables) counts.erase(kIndexPlaces);
  summary.memory_parts = model_->memory_parts();
  if (const auto scale = model_->loss_scale()) summary.loss_scale = scale->scale;
  for (const std::string& bytes : comm_.gather(cat(used_memory(runtime_.device())), 0))
    summary.memory.push_back(std::stoll(bytes));
  summary.between_hosts = bytes_between_hosts();
  return summary;
}

void Run::save_final_model() {
  const bool saved_before = saver_.last() && saver_.last()->iteration == now_.iterations;
  save_on_error("saving the final model",
                [&] { return saver_.save(now_.iterations, pipeline_->key_bytes()).iteration; });
  if (!saved_before) report_unsaved();
}

void Run::report_unsaved() {
  for (const std::string& table : model_->tables_with_shared_row())
    report_->event(cat("New keys of the full table '", table,
                       "' share a row, which is not in the model file: the file contains only rows of single keys."));
}

std::optional<TrainSummary::BetweenHosts> Run::bytes_between_hosts() {
  if (!comm_.several_hosts()) return std::nullopt;
  const BytesBetweenHosts mine = model_->bytes_between_hosts();
  TrainSummary::BetweenHosts all;
  for (const std::string& sent : comm_.gather(cat(mine.sent), 0)) all.sent += std::stoll(sent);
  for (const std::string& full : comm_.gather(cat(mine.of_full_size), 0)) all.of_full_size += std::stoll(full);
  return all;
}

}  // namespace hctr
