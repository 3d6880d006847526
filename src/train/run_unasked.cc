// Models that are saved because a run is stopped or fails. A run that is stopped every hour keeps the last of them.
#include <algorithm>

#include "train/run.h"

namespace hctr {

void Run::note_unasked_model() {
  if (comm_.rank() != 0) return;
  std::vector<int64_t> all = folder_.unasked_models();
  if (std::ranges::find(all, now_.iterations) == all.end()) all.push_back(now_.iterations);
  folder_.set_unasked_models(std::move(all));
}

void Run::replace_unasked_models(bool this_one_is_asked_for) {
  if (comm_.rank() != 0) return;
  const SolverSection& solver = config_.solver;
  const auto is_asked_for = [&](int64_t iteration) {
    const auto every = [&](int64_t interval) { return interval > 0 && iteration % interval == 0; };
    return every(solver.snapshot) || every(solver.snapshot_delta) ||
           (saver_.best() && saver_.best()->iteration == iteration);
  };
  std::vector<int64_t> left;
  for (const int64_t iteration : folder_.unasked_models())
    if (iteration == now_.iterations) {
      if (!this_one_is_asked_for) left.push_back(iteration);
    } else if (!is_asked_for(iteration)) {
      saver_.remove(iteration);
    }
  folder_.set_unasked_models(std::move(left));
}

}  // namespace hctr
