#include "infer/loaded_model.h"

#include <utility>
#include <vector>

#include "core/base/expect.h"

namespace hctr {
namespace {

Config config_for(const SavedModel& model, Config config) {
  use_saved_model(model, config);
  return config;
}

SavedModel with_tables(SavedModel model, bool with) {
  if (!with) model.tables.clear();
  return model;
}

RuntimeOptions options_of(const Config& config, const Communicator& comm, const LoadOnRank& on) {
  RuntimeOptions options{.threads = on.threads,
                         .seed = config.solver.seed.value,
                         .tf32 = config.solver.enable_tf32_compute,
                         .tf32x3 = config.solver.tf32x3(),
                         .sync_launches = on.sync_launches,
                         .several_ranks = comm.size() > 1,
                         .row_memory = on.row_memory};
  options.row_memory.move_every = 0;  // row accesses are counted only in training
  return options;
}

}  // namespace

LoadedModel::LoadedModel(Config config, SavedModel saved, Communicator& comm, const LoadOnRank& on, const Log& log)
    : saved_(with_tables(std::move(saved), on.with_tables)),
      config_(config_for(saved_, std::move(config))),
      comm_(comm),
      runtime_(on.device, options_of(config_, comm, on)),
      // The model is not trained, so its ring of training batches has only one buffer, for one row.
      replica_(config_, runtime_, comm,
               {.samples = 1,
                .eval_samples = on.samples,
                .ring_size = 1,
                .use = on.with_tables ? ReplicaUse::score : ReplicaUse::score_dense}) {
  load(log);
  runtime_.compute_stream().synchronize();
  comm_.barrier();  // ranks take different times to load, which must not count towards the timeout of a batch
}

void LoadedModel::load(const Log& log) {
  in_context(
      [&] {
        return cat("loading ", saved_.name,
                   saved_.differences.empty() ? "" : ", whose config differs: ", saved_.differences);
      },
      [&] {
        if (!saved_.checkpoint) return replica_.load(log);
        const bool exact = comm_.size() == 1 && saved_.checkpoint->ranks() == 1;
        replica_.load_state(StateReader(saved_.checkpoint->folder, saved_.checkpoint->manifest, exact, comm_.rank(),
                                        runtime_.compute_stream()));
      });
}

}  // namespace hctr
