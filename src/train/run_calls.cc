// Calls that the caller of a run makes between steps.
#include <algorithm>
#include <utility>

#include "core/base/files.h"
#include "core/comm/collective_error.h"
#include "infer/own_files.h"
#include "net/model/model_files.h"
#include "train/run.h"

namespace hctr {
namespace {

/// The config's solver section, with `files` as the only initial files.
SolverSection solver_with(const WeightFiles& files, const Config& config) {
  SolverSection solver = config.solver;
  solver.dense_model_file = files.dense;
  solver.dense_opt_states_file = files.dense_states;
  solver.load_layers.clear();
  solver.pretrained.clear();
  const auto by_table = [&](const std::map<std::string, std::string>& of) {
    std::vector<std::string> list;
    for (const EmbeddingEntry& embedding : config.embeddings) {
      const auto found = of.find(embedding.section.top());
      list.push_back(found == of.end() ? "" : found->second);
    }
    return of.empty() ? std::vector<std::string>() : list;
  };
  solver.sparse_model_file = by_table(files.tables);
  solver.sparse_opt_states_file = by_table(files.table_states);
  return solver;
}

std::vector<std::string> names_of(const WeightFiles& files) {
  std::vector<std::string> names = {files.dense, files.dense_states};
  for (const auto* of : {&files.tables, &files.table_states})
    for (const auto& [table, file] : *of) names.push_back(file);
  std::erase(names, "");
  return names;
}

/// The model parts for which the config names no file.
ModelParts parts_kept(const Config& config) {
  ModelParts kept{.dense = config.solver.dense_model_file.empty()};
  for (size_t e = 0; e < config.embeddings.size(); ++e)
    kept.tables.push_back(config.solver.sparse_model_file.empty() || config.solver.sparse_model_file[e].empty());
  return kept;
}

}  // namespace

TrainEnd Run::step_on(const GivenSamples& samples) {
  if (begin_call({})) return end_call();
  pipeline_->give(samples, now_.samples);
  try {
    train(On::given, [&](double) { checkpoints_->poll(now_.iterations); });
  } catch (...) {
    try {
      pipeline_->finish_copies();
    } catch (const Error&) {
      // ignore a device error, because the exception that is rethrown already reports it
    }
    throw;
  }
  pipeline_->finish_copies();
  return end_call();
}

std::map<std::string, double> Run::evaluate_on(const GivenSamples& samples) {
  check_finite(last_loss());
  if (!given_evaluator_)
    given_evaluator_ = std::make_unique<Evaluator>(Evaluator::OfGiven(), config_, comm_, *model_, eval_layout_, log_);
  given_evaluator_->give(samples);
  const auto result = given_evaluator_->run(now_.iterations, options_.stop);
  return result ? result->metrics : std::map<std::string, double>();
}

std::vector<fs::path> Run::save_at(const std::string& prefix) {
  check_finite(last_loss());
  run_on_all_ranks(comm_, [&] {
    if (comm_.rank() == 0) create_parent_folder(prefix);
  });
  return saver_.save_copy(prefix, now_.iterations, pipeline_->key_bytes());
}

void Run::set_source(const std::string& source) {
  const std::string before = std::exchange(config_.data.source, path_of_rank(path_on_host(source), comm_.rank()));
  const ReadProgress progress = pipeline_->progress();
  try {
    run_on_all_ranks(comm_, [&] { pipeline_->change_source(now_.samples); });
    throw_on_all_ranks(comm_, error_of([&] {
                         expect_one_data_set();
                         if (comm_.rank() == 0) expect_fitting_data();
                       }));
  } catch (...) {
    config_.data.source = before;
    pipeline_->go_back_to(progress);
    throw;
  }
  pass_ended_ = false;
  saver_.set_origin({folder_.run(), data_json(), folder_.path().string()});
}

void Run::set_evaluation_source(const std::string& source) {
  const std::string before = std::exchange(config_.data.eval_source, path_of_rank(path_on_host(source), comm_.rank()));
  std::unique_ptr<Evaluator> next;
  try {
    run_on_all_ranks(comm_, [&] { next = std::make_unique<Evaluator>(config_, comm_, *model_, eval_layout_, log_); });
  } catch (...) {
    config_.data.eval_source = before;
    throw;
  }
  evaluator_ = std::move(next);
  left_evaluation_.reset();
  now_.evaluated_at = -1;
}

void Run::freeze(const std::vector<std::string>& names, bool frozen) {
  last_loss();  // waits for all steps
  for (const std::string& name : names) {
    model_->freeze(name, frozen);
    frozen ? void(frozen_.insert(name)) : void(frozen_.erase(name));
  }
  if (pipeline_->records()) pipeline_->record_again();
}

void Run::check_files(const WeightFiles& files) {
  run_on_all_ranks(comm_, [&] {
    if (comm_.rank() != 0) return;
    for (const auto& file : names_of(files))
      if (!fs::exists(file)) throw Error(Kind::io, cat("there is no '", file, "' to load"));
    Config config = config_;
    config.solver = solver_with(files, config_);
    check_model_files(config, Log::silent());
  });
}

void Run::load(const WeightFiles& files) {
  config_.solver = solver_with(files, config_);
  now_.loss = last_loss();
  check_finite(now_.loss);
  uncounted_losses();  // records which losses have counted samples; the result is not needed
  checkpoints_->finish();
  comm_.barrier();  // after this barrier, other ranks do not access this rank's memory
  const LossSum sum = pipeline_->loss_sum();
  const ReadProgress progress = pipeline_->progress();
  const ReaderPosition evaluation = evaluator_ ? evaluator_->position() : ReaderPosition{};
  const ModelParts kept = parts_kept(config_);
  const auto state = std::make_shared<StateInMemory>();
  const StateWriter::Sink keep = [&](HostBytes piece) { state->pieces.push_back(std::move(piece)); };
  model_->save_state(StateWriter(0, runtime_.compute_stream(), state->index, keep, {.iteration = now_.iterations}),
                     kept);

  // Objects that use the model are destroyed before the model.
  profile_.reset();
  given_evaluator_.reset();
  evaluator_.reset();
  pipeline_.reset();
  model_.reset();
  model_ = make_model();
  saver_.set_model(*model_);
  model_->load_beside(StateReader(state, runtime_.compute_stream()), kept, now_.iterations, log_);
  for (const std::string& name : frozen_) model_->freeze(name, true);
  pipeline_ = make_pipeline(progress);
  pipeline_->start_loss_sum(sum);
  if (!config_.data.eval_source.empty())
    evaluator_ = std::make_unique<Evaluator>(config_, comm_, *model_, eval_layout_, log_, evaluation);
  checkpoints_->begin_whole();
  trained_ = false;
  now_.evaluated_at = -1;
  comm_.barrier();
}

}  // namespace hctr
