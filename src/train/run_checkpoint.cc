// Saves and restores the state of a run in checkpoints.
#include <algorithm>
#include <limits>

#include "engine/placement/plan_file.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/data/numbering.h"
#include "formats/model/model_manifest.h"
#include "infer/model_encoding.h"
#include "train/placement_plan.h"
#include "train/product_choice.h"
#include "train/run.h"
#include "train/run_about.h"

namespace hctr {

ReadProgress Run::read_progress() const {
  if (!from_) return {};
  return {now_.reader, now_.skipped_records, static_cast<int>(now_.key_bytes)};
}

Json Run::data_json() const {
  Json json = to_json(pipeline_->data_fingerprint());
  const std::string numbering = config_.data.source.empty() ? "" : numbering_of_data(config_.data.source);
  if (!numbering.empty()) json.set("numbering", numbering);
  if (!encoding_contents_.object()->empty()) json.set("encoding", encoding_contents_);
  return json;
}

void Run::expect_fitting_data() const {
  if (config_.data.source.empty()) return;
  expect_one_numbering();
  expect_one_key_rule();
}

void Run::expect_one_numbering() const {
  const std::string &source = config_.data.source, numbering = numbering_of_data(source);
  expect_numbering(numbering, cat("the training data '", source, "'"), config_.data.eval_source);
  if (from_) return;  // the run that is resumed has already made this check
  std::vector<std::string> files = config_.solver.sparse_model_file;
  files.push_back(config_.solver.dense_model_file);
  for (const std::string& file : files)
    if (!file.empty())
      if (const auto manifest = manifest_of(file)) {
        const Json* wanted = manifest->data.find("numbering");
        if (wanted && wanted->string()) expect_numbering(*wanted->string(), cat("the model '", file, "'"), source);
      }
}

/// Checks that the evaluation data and the initial model derive keys from columns by the same rules as the training
/// data.
void Run::expect_one_key_rule() const {
  const std::string& source = config_.data.source;
  const std::vector<SlotKeyRule> keys = pipeline_->data_fingerprint().slot_key_rules;
  const auto expect_same = [](const std::vector<SlotKeyRule>& wanted, const std::string& of,
                              const std::vector<SlotKeyRule>& found, const std::string& in) {
    expect_slot_key_rules(wanted, of, found, in);
    expect_same_times(wanted, of, found, in);
  };
  if (evaluator_)
    expect_same(keys, cat("the training data '", source, "'"), evaluator_->data_fingerprint().slot_key_rules,
                cat("the evaluation data '", config_.data.eval_source, "'"));
  if (from_) return;  // the run that is resumed has already made this check
  for (const std::string& file : config_.solver.sparse_model_file)
    if (const auto manifest = manifest_of(file))
      expect_same(key_rules_of_model(manifest->config, &manifest->data),
                  cat("the training data of the model '", file, "'"), keys, cat("the training data '", source, "'"));
}

void Run::load_checkpoint() {
  model_->load_state(StateReader(from_->folder, from_->manifest, exact_, comm_.rank(), runtime_.compute_stream()));
  now_ = from_->progress;
  // Rank 0 decides, because saving is collective and the files are on rank 0's host. Files of other runs are ignored,
  // because the run links and removes only its own models.
  const auto are_own = [&](const std::vector<std::string>& names, int64_t iteration) {
    const std::vector<fs::path> files(names.begin(), names.end());
    const auto exists = [](const fs::path& file) { return fs::exists(file); };
    const bool own =
        comm_.rank() == 0 && std::ranges::all_of(files, exists) && is_model_of_run(files, from_->run(), iteration);
    return comm_.broadcast(own ? "yes" : "", 0) == "yes";
  };
  if (now_.snapshot_iteration >= 0 && are_own(now_.snapshot_files, now_.snapshot_iteration))
    saver_.go_on({now_.snapshot_iteration, {now_.snapshot_files.begin(), now_.snapshot_files.end()}});
  if (!now_.best_files.empty() && are_own(now_.best_files, now_.best_iteration))
    saver_.go_on_with_best({now_.best_iteration, {now_.best_files.begin(), now_.best_files.end()}});
  log_.info("Resuming from '", from_->folder.string(), "' after iteration ", now_.iterations,
            exact_ ? "."
                   : cat(", which ", from_->ranks(), from_->ranks() == 1 ? " rank has" : " ranks have",
                         " saved: rows are redistributed, and results may differ in the last bits."));
}

Checkpointer::Saved Run::saved_checkpoint() const {
  if (!from_ || !in_checkpoint_folder(config_, *from_)) return {};
  Checkpointer::Saved saved{.iteration = from_->progress.iterations};
  const Manifest& manifest = from_->manifest;
  const auto iteration = iteration_of(manifest.base ? manifest.base->folder : from_->folder);
  // Increments cannot build on redistributed rows or on a renamed checkpoint.
  if (!exact_ || !iteration || config_.solver.checkpoint.whole_every <= 1) return saved;
  if (manifest.base)
    saved.base = {*iteration, manifest.base->crc, manifest.base->increment};
  else if (*iteration == saved.iteration)
    saved.base = {*iteration, manifest.files_crc(), 0};
  return saved;
}

void Run::say_what_increments_save() const {
  if (config_.solver.checkpoint.whole_every <= 1) return;
  for (size_t e = 0; e < config_.embeddings.size(); ++e)
    if (const TableSpec& spec = model_->table_spec(e); spec.changes_every_row())
      log_.info("\"whole_every\" does not make checkpoints smaller for table '", spec.name,
                "': with \"update_type\": \"Global\" every row changes in every step, so every checkpoint contains "
                "all rows. \"LazyGlobal\" and \"Local\" change only rows of a batch.");
}

void Run::choose_algorithms() {
  if (!config_.solver.algorithm_search) return;
  const Json* before = from_ ? from_->manifest.about.find("algorithms") : nullptr;
  algorithms_ = before && before->string() ? *before->string() : "";
  if (!pipeline_->records()) return;  // steps are not recorded, so only pass the algorithms on to the next checkpoint
  algorithms_ = choose_product_algorithms(runtime_, comm_, config_.solver.algorithm_file.value_or(""), algorithms_,
                                          options_.surroundings.environment, log_);
  pipeline_->record_again();
  if (evaluator_) evaluator_->record_again();
}

void Run::save_checkpoint(bool finished) {
  if (!config_.solver.checkpoint.given || now_.iterations == 0) return;
  now_.loss = last_loss();  // waits for all steps
  check_finite(now_.loss);
  uncounted_losses();  // records which losses have counted samples; the result is not needed
  checkpoints_->save(checkpoint_content(finished));
}

Checkpointer::Content Run::checkpoint_content(bool finished) {
  Checkpointer::Content content{.iteration = now_.iterations,
                                .state = [this](StateWriter to) { model_->save_state(std::move(to)); },
                                .best_iteration = now_.best_iteration,
                                .last = finished || stopping_};
  if (comm_.rank() == 0) {
    now_.finished = finished;
    now_.skipped_records = pipeline_->skipped_records();
    now_.key_bytes = pipeline_->key_bytes();
    now_.report = report_->state();
    now_.loss_sum = pipeline_->loss_sum();
    now_.reader = pipeline_->progress().position;
    if (feed_) note_followed();
    now_.eval_reader = evaluator_ ? left_evaluation_.value_or(evaluator_->position()) : ReaderPosition{};
    now_.snapshot_iteration = saver_.last() ? saver_.last()->iteration : -1;
    now_.snapshot_files.clear();
    if (saver_.last())
      for (const fs::path& file : saver_.last()->files) now_.snapshot_files.push_back(file.string());
    now_.best_files.clear();
    if (saver_.best())
      for (const fs::path& file : saver_.best()->files) now_.best_files.push_back(file.string());
    const Json plan = placements_.empty() ? Json() : plan_to_json(plan_problem(config_, comm_.size(), {}), placements_);
    content.about = about_run(folder_.run(), config_, device_, data_json(), plan);
    if (!algorithms_.empty()) content.about.set("algorithms", algorithms_);
    content.progress = to_json(now_);
    content.progress.set("run_dir", folder_.path().string());
    content.progress.set("metrics_bytes", metrics_bytes_.value_or(folder_.metrics_bytes()));
    content.metrics = folder_.metrics_path();
  }
  return content;
}

std::filesystem::path Run::save_checkpoint_in(const fs::path& folder) {
  const CheckpointSection section{
      .given = true, .keep_last = std::numeric_limits<int64_t>::max(), .folder = folder.string()};
  now_.loss = last_loss();  // waits for all steps
  check_finite(now_.loss);
  uncounted_losses();
  checkpoints_->finish();
  {
    Checkpointer once(section, comm_, runtime_, *report_, {});
    once.save(checkpoint_content(ended_));
    once.finish();
  }
  // changes are now counted from this checkpoint, so the next regular checkpoint must be full
  checkpoints_->begin_whole();
  const fs::path saved = checkpoint_path(folder, now_.iterations);
  run_on_all_ranks(comm_, [&] {
    if (comm_.rank() == 0 && !fs::exists(saved / kManifestName))
      throw Error(Kind::io, cat("the checkpoint '", saved.string(), "' could not be saved; the log says why"));
  });
  return saved;
}

}  // namespace hctr
