// Saves models and checkpoints because a run stops or fails. Keeps only the latest, which is a checkpoint if the config
// makes checkpoints, otherwise a model.
#include <algorithm>

#include "formats/checkpoint/checkpoint_folder.h"
#include "train/run.h"

namespace hctr {

void Run::note_unasked_model() {
  if (comm_.rank() != 0) return;
  std::vector<int64_t> all = folder_.unasked_models();
  if (std::ranges::find(all, now_.iterations) == all.end()) all.push_back(now_.iterations);
  folder_.set_unasked_models(std::move(all));
}

void Run::replace_unasked_models(ModelOfStep of_now) {
  if (comm_.rank() != 0) return;
  const SolverSection& solver = config_.solver;
  const auto is_asked_for = [&](int64_t iteration) {
    const auto every = [&](int64_t interval) { return interval > 0 && iteration % interval == 0; };
    return every(solver.snapshot) || every(solver.snapshot_delta) ||
           (saver_.best() && saver_.best()->iteration == iteration);
  };
  std::vector<int64_t> left;
  for (const int64_t iteration : folder_.unasked_models())
    if (iteration == now_.iterations && of_now != ModelOfStep::left_out) {
      if (of_now == ModelOfStep::unasked) left.push_back(iteration);
    } else {
      saver_.remove(iteration, is_asked_for(iteration));
    }
  folder_.set_unasked_models(std::move(left));
}

bool Run::save_stopped_state() {
  const CheckpointSection& checkpoint = config_.solver.checkpoint;
  const bool has_steps = now_.iterations > 0, saves = saves_model();
  const std::string untrained = has_trained() ? "" : why_untrained();
  std::string then;
  if (checkpoint.given && has_steps)
    then = "; saving a checkpoint";
  else if (saves && untrained.empty())
    then = "; saving the model. With \"checkpoint\" in the solver a stopped run can be resumed";
  if (!untrained.empty()) then += cat("; no model is saved: ", untrained);
  report_->event(cat("Stopped on request after iteration ", now_.iterations, then, "."));
  if (!checkpoint.given || !has_steps) return false;
  save_checkpoint();
  checkpoints_->finish();
  if (!checkpoints_->has(now_.iterations)) {
    if (saves && untrained.empty()) report_->event("The checkpoint could not be saved: saving the model instead.");
    return false;
  }
  const std::string folder = checkpoint_path(checkpoint.folder, now_.iterations).string();
  report_->event(cat("'", folder, "' contains the state after iteration ", now_.iterations,
                     untrained.empty() ? ", so no model is saved: --resume latest resumes from the checkpoint, "
                                         "--model loads the checkpoint"
                                       : ": --resume latest resumes from the checkpoint",
                     "."));
  return true;
}

}  // namespace hctr
