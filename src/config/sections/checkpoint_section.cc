#include "config/sections/checkpoint_section.h"

namespace hctr {

Schema<CheckpointSection> checkpoint_schema() {
  using C = CheckpointSection;
  return Schema<C>("checkpoint")
      .opt("every", &C::every, "iterations between checkpoints; 0: none by count", at_least(0))
      .opt("every_minutes", &C::every_minutes, "minutes between checkpoints; 0: none by time", at_least(0))
      .opt("whole_every", &C::whole_every,
           "one in so many checkpoints is whole; the others hold the rows of tables that have changed since, and need "
           "it",
           at_least(1))
      .opt("keep_last", &C::keep_last, "the newest checkpoints, which are kept", at_least(1))
      .opt("keep_best", &C::keep_best,
           "a metric of eval_metrics: each evaluation that beats all before saves a checkpoint, which is kept as long "
           "as it is the best")
      .opt("folder", &C::folder, "where checkpoints are, relative to the working folder; of one run")
      .together([](C& c, const std::string& pointer, Problems& problems) {
        c.given = true;
        if (c.folder.empty()) problems.error(pointer + "/folder", "expected the path of a folder, found \"\"");
      });
}

}  // namespace hctr
