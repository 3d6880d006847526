#include "config/sections/checkpoint_section.h"

namespace hctr {

Schema<CheckpointSection> checkpoint_schema() {
  using C = CheckpointSection;
  return Schema<C>("checkpoint")
      .opt("every", &C::every, "iterations between checkpoints; 0: no checkpoints by iterations", at_least(0))
      .opt("every_minutes", &C::every_minutes, "minutes between checkpoints; 0: no checkpoints by time", at_least(0))
      .opt("whole_every", &C::whole_every,
           "every Nth checkpoint is full; other checkpoints are increments with the table rows that changed since "
           "the last full one",
           at_least(1))
      .opt("keep_last", &C::keep_last, "number of newest checkpoints to keep", at_least(1))
      .opt("keep_best", &C::keep_best,
           "a metric of eval_metrics: each evaluation with a new best value saves a checkpoint, which is kept "
           "until a better one exists")
      .opt("folder", &C::folder,
           "the folder of checkpoints, relative to the working folder; each run needs its "
           "own folder")
      .together([](C& c, const std::string& pointer, Problems& problems) {
        c.given = true;
        if (c.folder.empty()) problems.error(pointer + "/folder", "expected the path of a folder, found \"\"");
      });
}

}  // namespace hctr
