#include "train/model_saver.h"

#include <algorithm>
#include <system_error>

#include "core/base/current_error.h"
#include "core/base/files.h"
#include "core/comm/collective_error.h"
#include "hctr/formats.h"
#include "infer/models_at_prefix.h"

namespace hctr {
namespace {

/// The model files from which training starts. Their optimizer states are next to them.
std::vector<std::string> model_inputs(const Config& config) {
  std::vector<std::string> files = config.solver.sparse_model_file;
  files.push_back(config.solver.dense_model_file);
  std::erase(files, "");
  return files;
}

/// The initial model file that a snapshot of this iteration would overwrite; empty if there is none.
fs::path replaced_file(const Config& config, const std::string& prefix, int64_t iteration) {
  std::vector<fs::path> names = {formats::dense_model_name(prefix, iteration)};
  for (size_t e = 0; e < config.embeddings.size(); ++e)
    names.emplace_back(formats::sparse_model_name(prefix, static_cast<int64_t>(e), iteration));
  std::error_code error;
  for (const std::string& input : model_inputs(config))
    if (std::any_of(names.begin(), names.end(),
                    [&](const fs::path& name) { return fs::equivalent(name, input, error); }))
      return input;
  return {};
}

/// The iteration in the name of a model file, "<anything>_<iteration>.model".
std::optional<int64_t> iteration_of(const std::string& file) {
  const std::string stem = fs::path(file).stem().string();
  const std::string digits = stem.substr(stem.rfind('_') + 1);
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != digits.npos) return {};
  return std::stoll(digits);
}

void expect_inputs_stay(const Config& config, const std::string& prefix) {
  const SolverSection& solver = config.solver;
  for (const std::string& file : model_inputs(config)) {
    const auto iteration = iteration_of(file);
    if (!iteration || replaced_file(config, prefix, *iteration).empty()) continue;
    const bool is_last = solver.max_iter == iteration, before_end = !solver.max_iter || *iteration < *solver.max_iter;
    if (is_last || (solver.snapshot > 0 && *iteration % solver.snapshot == 0 && before_end))
      throw Error(Kind::config,
                  cat("the model of iteration ", *iteration, " would replace '", file,
                      "', from which training starts: set a \"snapshot_prefix\" other than \"", prefix, "\""));
  }
}

/// The path prefix of saved models; empty if models are not saved.
std::string prefix_of(const Config& config, const fs::path& run_folder) {
  return run_folder.empty() ? config.solver.snapshot_prefix : snapshot_prefix_of(config.solver, run_folder);
}

}  // namespace

void expect_models_stay(const Config& config, const OwnRun& own, const Log& log) {
  if (!config.solver.snapshot_prefix.empty() && !config.solver.replace_models)
    expect_no_other_models(config.solver, own, log);
}

void prepare_snapshots(const Config& config, const fs::path& run_folder, const Log& log) {
  const std::string prefix = prefix_of(config, run_folder);
  if (prefix.empty()) return;
  expect_inputs_stay(config, prefix);
  in_context([&] { return cat("testing whether \"snapshot_prefix\" \"", prefix, "\" can be used"); },
             [&] {
               create_parent_folder(prefix);
               remove_unfinished_deltas(prefix);
               if (const int removed = remove_parts_of_dead_processes(prefix); removed > 0)
                 log.info("Removed ", removed, removed == 1 ? " file" : " files", " '", prefix,
                          "*.part' of runs that were killed while saving.");
               AtomicFile probe(prefix + "probe");
               probe.write("probe");
               probe.finish();
             });
}

ModelSaver::ModelSaver(const Config& config, Communicator& comm, Replica& model, const fs::path& run_folder,
                       const Log& log)
    : config_(config),
      comm_(comm),
      model_(&model),
      prefix_(comm.broadcast(prefix_of(config, run_folder), 0)),
      run_prefix_(comm.broadcast(run_folder.empty() ? "" : (run_folder / "saved").string(), 0)),
      log_(log) {}

const ModelSaver::Saved& ModelSaver::save_at(const std::string& prefix, int64_t iteration, int data_key_bytes) {
  last_ = {iteration, model_->save(prefix, iteration, data_key_bytes, origin_)};
  return *last_;
}

const ModelSaver::Saved& ModelSaver::save(int64_t iteration, int data_key_bytes) {
  if (last_ && last_->iteration == iteration) return *last_;
  const std::string kept = comm_.broadcast(comm_.rank() == 0 ? why_kept(iteration) : "", 0);
  if (!kept.empty()) {
    if (run_prefix_.empty()) throw Error(Kind::io, cat(kept, ", and the run has no run folder for the model"));
    log_.warning(kept, ": the model of iteration ", iteration, " is saved as '", run_prefix_, "*'");
    return save_at(run_prefix_, iteration, data_key_bytes);
  }
  try {
    return save_at(prefix_, iteration, data_key_bytes);
  } catch (const Error&) {
    failed_at_ = iteration;
    throw;
  }
}

std::string ModelSaver::why_kept(int64_t iteration) const {
  if (const fs::path input = replaced_file(config_, prefix_, iteration); !input.empty())
    return cat("'", input.string(), "' is not overwritten, because training started from this file");
  const std::string other = replaces_others_ || config_.solver.replace_models
                                ? ""
                                : other_run_at(prefix_, iteration, {origin_.run, origin_.run_folder});
  if (other.empty()) return "";
  return cat("'", formats::dense_model_name(prefix_, iteration),
             "' is not overwritten, because the file belongs "
             "to a model of ",
             other);
}

bool ModelSaver::snapshot(int64_t iteration, int data_key_bytes) {
  try {
    save(iteration, data_key_bytes);
    start_deltas(iteration);
    return true;
  } catch (const Error& error) {
    if (!thrown_on_all_ranks(comm_) || error.kind() != Kind::io) throw;
    log_.warning("the snapshot of iteration ", iteration, " is skipped, and training continues: ", error.what(), "; ",
                 describe_last());
    return false;
  }
}

void ModelSaver::start_deltas(int64_t iteration) {
  if (config_.solver.snapshot_delta == 0) return;
  finish_delta();
  model_->note_model();
  if (comm_.rank() == 0) delta_base_ = iteration;
  if (publisher_) publisher_->add_whole(last_->files.front(), iteration);
}

void ModelSaver::start_publishing(int64_t iteration) {
  const PublishSection& publish = config_.solver.publish;
  if (!publish.given || !has_place()) return;
  for (const auto& embedding : config_.embeddings)
    if (publish.format == StreamFormat::hps && embedding.section.identity_by_slot())
      throw Error(Kind::config, cat("\"publish\": table '", embedding.section.top(),
                                    "' identifies rows by slot and key, which format \"hps\" cannot express"));
  run_on_all_ranks(comm_, [&] {
    if (comm_.rank() == 0)
      publisher_ = std::make_unique<DeltaPublisher>(publish, prefix_, origin_.run, iteration, log_);
  });
}

void ModelSaver::finish_publishing(bool stopped) {
  constexpr double kLongestOfStopped = 2;  // maximum wait in seconds after a request to stop
  finish_delta();
  const double wait = config_.solver.publish.wait_at_end;
  if (publisher_) publisher_->finish(stopped ? std::min(wait, kLongestOfStopped) : wait);
}

void ModelSaver::save_delta(int64_t iteration, int data_key_bytes) {
  finish_delta();
  if (publisher_ && publisher_->take_needs_whole()) delta_base_.reset();
  const std::string base = comm_.broadcast(delta_base_ ? cat(*delta_base_) : "", 0);
  if (base.empty()) {
    if (snapshot(iteration, data_key_bytes))
      log_.info("Snapshot: ", last_->files.front().string(), ", the full model that deltas build on");
    return;
  }
  try {
    auto delta = model_->save_delta(prefix_, iteration, std::stoll(base), data_key_bytes, origin_);
    if (comm_.rank() != 0) return;
    delta_base_ = iteration;
    writing_ = std::make_unique<DeltaThread>();
    writing_->delta = std::move(delta);
    DeltaThread& now = *writing_;
    // The thread publishes the delta itself: the next step may be far away if training waits for data.
    const auto write = [&now, iteration, publisher = publisher_.get()] {
      try {
        now.delta->write();
        if (publisher) publisher->add_delta(now.delta->folder(), iteration);
      } catch (const std::exception& error) {
        now.failure = error.what();
      }
      now.done = true;
    };
    try {
      now.thread = std::thread(write);
    } catch (const std::system_error&) {  // the system refused a thread, so training waits for the write
      write();
    }
  } catch (const Error& error) {
    if (!thrown_on_all_ranks(comm_) || error.kind() != Kind::io) throw;
    log_.warning("the delta of iteration ", iteration, " is skipped, and training continues: ", error.what(), "; ",
                 describe_last());
  }
}

void ModelSaver::poll_delta() {
  if (writing_ && writing_->done) finish_delta();
}

void ModelSaver::finish_delta() {
  if (!writing_) return;
  if (writing_->thread.joinable()) writing_->thread.join();
  if (!writing_->failure.empty()) {
    delta_base_.reset();  // the next delta cannot build on this one, whose changes are not saved
    log_.warning("the delta '", writing_->delta->folder().string(), "' could not be saved: ", writing_->failure,
                 "; training continues, and the next delta is a full model");
  } else {
    int64_t changed = 0, removed = 0;
    for (const SavedDelta::Table& table : writing_->delta->about().tables) {
      changed += table.changed;
      removed += table.removed;
    }
    log_.info("Delta: ", writing_->delta->folder().string(), ", ", changed, " rows since iteration ",
              writing_->delta->about().base, removed > 0 ? cat(", and ", removed, " removed") : "");
  }
  writing_.reset();
}

bool ModelSaver::save_best(int64_t iteration, int data_key_bytes) {
  if (!snapshot(iteration, data_key_bytes)) return false;
  const std::optional<Saved> before = std::exchange(best_, last_);
  const int64_t every = config_.solver.snapshot;
  if (!before || before->iteration == iteration || (every > 0 && before->iteration % every == 0) ||
      before->iteration == delta_base_)
    return true;
  if (comm_.rank() == 0)
    for (const fs::path& file : before->files) {
      std::error_code error;
      fs::remove_all(file, error);
      if (error) log_.warning("cannot remove '", file.string(), "', which a better model replaces: ", error.message());
    }
  return true;
}

void ModelSaver::remove(int64_t iteration, bool asked_for) const {
  for (const std::string& prefix : {prefix_, run_prefix_})
    if (remove_model_of_run(prefix, iteration, {origin_.run, origin_.run_folder}, asked_for) && !asked_for)
      log_.info("Removed the model of iteration ", iteration, " at '", prefix,
                "', which an earlier stop or error of this run had saved: a newer state is saved now.");
}

std::string ModelSaver::save_after_error(const Error& error, int64_t iteration, int data_key_bytes) {
  // Saving is collective. If only this rank has failed, the other ranks are already in the step and would not take
  // part.
  const bool together = comm_.size() == 1 || dynamic_cast<const CollectiveError*>(&error);
  const bool intact = error.kind() == Kind::data || error.kind() == Kind::io || error.kind() == Kind::device;
  if (!together || !intact || !has_place()) return describe_last();
  const auto saved = [&](const Saved& model) {
    return cat("iteration ", iteration, " is saved as ", model.files.front().string());
  };
  const auto not_saved = [&](const Error& failed) {
    return cat("iteration ", iteration, " could not be saved: ", failed.what(), "; ", describe_last());
  };
  std::string reason;
  try {
    if (failed_at_ != iteration) return saved(save(iteration, data_key_bytes));
  } catch (...) {
    const Error failed = current_error();
    // A second save is collective. It is impossible if only this rank has failed, for example with an unreadable row,
    // because the other ranks are then still in the first save.
    if (failed.kind() == Kind::comm || !thrown_on_all_ranks(comm_)) return not_saved(failed);
    reason = cat(" (not at \"snapshot_prefix\": ", failed.what(), ")");
  }
  if (run_prefix_.empty()) return cat("iteration ", iteration, " could not be saved", reason, "; ", describe_last());
  try {
    return saved(save_at(run_prefix_, iteration, data_key_bytes)) + reason;
  } catch (...) {
    return not_saved(current_error());
  }
}

std::string ModelSaver::describe_last() const {
  return last_ ? cat("the last model saved is '", last_->files.front().string(), "'") : "no model has been saved";
}

void ModelSaver::link_into(const fs::path& folder, const Saved& saved) const {
  for (const fs::path& file : saved.files) {
    const fs::path to = folder / cat("final_", file.filename().string());
    std::error_code error, ignored;
    fs::remove_all(to, error);
    fs::copy(file, to, fs::copy_options::create_hard_links | fs::copy_options::recursive, error);
    if (error) {
      fs::remove_all(to, ignored);
      fs::copy(file, to, fs::copy_options::recursive, error);
    }
    if (!error) continue;
    fs::remove_all(to, ignored);
    log_.warning("cannot put a copy of '", file.string(), "' at '", to.string(), "': ", error.message());
  }
}

}  // namespace hctr
