#include "train/resume.h"

#include <utility>

#include "core/base/expect.h"
#include "formats/catalog/encoding_contents.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/whole_checkpoint.h"

namespace hctr {
namespace {

const std::string kEmpty;

const std::string& text(const Json& json, const char* name) {
  const Json* value = json.find(name);
  return value && value->string() ? *value->string() : kEmpty;
}

void check_progress(const WholeCheckpoint& checkpoint) { run_progress(checkpoint.manifest.progress); }

ResumePoint point_at(WholeCheckpoint checkpoint) {
  RunProgress progress = run_progress(checkpoint.manifest.progress);
  return {.folder = std::move(checkpoint.folder), .manifest = std::move(checkpoint.manifest), .progress = progress};
}

bool same_folder(const fs::path& a, const fs::path& b) {
  return fs::weakly_canonical(a / "").lexically_normal() == fs::weakly_canonical(b / "").lexically_normal();
}

}  // namespace

const std::string& ResumePoint::run() const { return text(manifest.about, "run"); }
fs::path ResumePoint::run_dir() const { return text(manifest.progress, "run_dir"); }

int64_t ResumePoint::metrics_bytes() const {
  const Json* bytes = manifest.progress.find("metrics_bytes");
  return bytes && bytes->integer() ? *bytes->integer() : 0;
}

const Json* ResumePoint::plan() const {
  const Json* plan = manifest.about.find("plan");
  return plan && plan->object() ? plan : nullptr;
}

bool ResumePoint::exact_for(const Config& config, int of_ranks) const {
  if (of_ranks != ranks()) return false;
  const Json* was = manifest.about.find("config");
  const Json *before = was ? was->find("solver") : nullptr, *now = config.effective.find("solver");
  const auto same = [&](const char* field) {
    const Json *a = before ? before->find(field) : nullptr, *b = now ? now->find(field) : nullptr;
    return (a ? a->text() : "") == (b ? b->text() : "");
  };
  return of_ranks == 1 || (same("placement") && same("placement_file"));
}

bool ResumePoint::finished_for(const Config& config) const {
  if (!progress.finished) return false;
  const SolverSection& solver = config.solver;
  // the end of the data does not end the run, because more files may arrive
  if (config.data.follow && !solver.max_iter) return progress.stopped_at.has_value();
  return progress.stopped_at ||
         (solver.max_iter ? progress.iterations >= *solver.max_iter : progress.epochs >= *solver.num_epochs);
}

std::optional<ResumePoint> find_resume_point(const TrainOptions& options, const Config& config, const Log& log) {
  if (options.resume.empty()) return std::nullopt;
  const bool latest = options.resume == "latest";
  if (latest && !config.solver.checkpoint.given)
    throw Error(Kind::config, cat("'", options.config.string(),
                                  "' has no \"checkpoint\" in the solver, which --resume latest needs; add "
                                  "\"checkpoint\", or name the folder of a checkpoint"));
  const fs::path folder = latest ? fs::path(config.solver.checkpoint.folder) : fs::path(options.resume);
  if (!latest && fs::exists(folder / kManifestName)) return point_at(read_checkpoint(folder, check_progress));
  if (auto newest = newest_checkpoint(folder, log, check_progress)) return point_at(std::move(*newest));
  if (!latest)
    throw Error(Kind::io, cat("'", folder.string(), "' contains no checkpoint: neither ", kManifestName,
                              " nor a checkpoint folder exists there"));
  log.info("No checkpoint in '", folder.string(), "' to resume from: training starts from the beginning.");
  return std::nullopt;
}

std::optional<ResumePoint> broadcast(Communicator& comm, const ResumePoint* of_rank_0) {
  const std::string folder = comm.broadcast(of_rank_0 ? of_rank_0->folder.string() : "", 0);
  if (folder.empty()) return std::nullopt;
  if (of_rank_0) return *of_rank_0;
  ResumePoint point{.folder = folder, .manifest = read_manifest(folder), .progress = {}};
  point.progress = run_progress(point.manifest.progress);
  return point;
}

Json about_run(const std::string& run, const Config& config, const std::string& device, const Json& data,
               const Json& plan) {
  Json about(
      Json::Object{{"run", run}, {"device", device}, {"data", data}, {"plan", plan}, {"config", config.effective}});
  if (!config.data.statistics.empty()) about.set("statistics", to_json(config.data.statistics));
  return about;
}

void expect_same_data(const ResumePoint& point, const Json& data, const Config& config) {
  const Json* was = point.manifest.about.find("data");
  if (was && was->text() == data.text()) return;
  if (const std::string changed = changed_contents(was, config.data); !changed.empty())
    throw Error(Kind::data, cat("the config encodes data differently than the config of the checkpoint '",
                                point.folder.string(), "': ", changed, ". Restore the original file"));
  for (const char* later : {"encoding", "slot_keys"}) {  // fields that checkpoints of older versions lack
    if (!was || was->find(later) || !data.find(later)) continue;
    Json rest(Json::Object{});
    for (const auto& [name, value] : *data.object())
      if (name != later) rest.set(name, value);
    return expect_same_data(point, rest, config);
  }
  throw Error(Kind::data, cat("the training data '", config.data.source,
                              "' differ from the training data of the "
                              "checkpoint '",
                              point.folder.string(), "': now ", data.text(), ", then ", was ? was->text() : "unknown",
                              "; resume with the same files"));
}

TrainSummary summary_of(const RunProgress& progress) {
  TrainSummary summary;
  summary.iterations = progress.iterations;
  summary.samples = progress.samples;
  summary.seconds = progress.report.seconds - progress.eval_seconds;
  summary.samples_per_second = summary.seconds > 0 ? static_cast<double>(progress.samples) / summary.seconds : 0;
  summary.final_loss = progress.loss;
  summary.metrics = progress.metrics;
  summary.undefined = progress.undefined;
  summary.skipped_records = progress.skipped_records;
  summary.skipped_steps = progress.skipped_steps;
  summary.stopped_at = progress.stopped_at;
  if (!progress.best_files.empty()) {
    summary.best_iteration = progress.best_iteration;
    summary.best_metrics = progress.best_metrics;
  }
  return summary;
}

bool in_checkpoint_folder(const Config& config, const ResumePoint& point) {
  return same_folder((point.folder / "").lexically_normal().parent_path().parent_path(),
                     config.solver.checkpoint.folder);
}

void take_checkpoint_folder(const Config& config, const ResumePoint* from, const Log& log) {
  const fs::path folder = config.solver.checkpoint.folder;
  remove_parts(folder);
  if (from && in_checkpoint_folder(config, *from)) {
    for (const fs::path& left : leave_newer_checkpoints(folder, from->progress.iterations))
      log.info("A newer checkpoint no longer belongs to the run and was renamed to '", left.string(), "'.");
    return;
  }
  const std::vector<CheckpointPlace> others = list_checkpoints(folder);
  if (others.empty()) return;
  const fs::path whole = (folder / "").lexically_normal().parent_path();
  fs::path to;
  for (int n = 1; to.empty() || fs::exists(to); ++n) to = cat(whole.string(), ".", n);
  std::error_code error;
  fs::create_directories(to, error);
  for (const CheckpointPlace& place : others)
    if (!error) fs::rename(place.path, to / place.path.filename(), error);
  if (error)
    throw Error(Kind::io, cat("cannot move the checkpoints of an earlier run from '", folder.string(), "' to '",
                              to.string(), "': ", error.message(), "; give another \"folder\""));
  log.info("'", folder.string(), "' contained checkpoints of an earlier run, which were moved to '", to.string(),
           "' (--resume latest would have resumed from these).");
}

}  // namespace hctr
