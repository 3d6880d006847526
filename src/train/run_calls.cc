// What a caller asks of a run between its steps.
#include <algorithm>
#include <utility>

#include "core/base/files.h"
#include "core/comm/collective_error.h"
#include "train/own_files.h"
#include "train/run.h"

namespace hctr {

TrainEnd Run::step_on(const GivenSamples& samples) {
  if (begin_call({})) return end_call();
  pipeline_->give(samples);
  train(On::given, [&](double) { checkpoints_->poll(now_.iterations); });
  return end_call();
}

std::map<std::string, double> Run::evaluate_on(const GivenSamples& samples) {
  check_finite(last_loss());
  if (!given_evaluator_)
    given_evaluator_ =
        std::make_unique<Evaluator>(Evaluator::OfGiven(), config_, runtime_, comm_, model_, eval_layout_, log_);
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
  std::optional<Error> failed;
  try {
    pipeline_->change_source();
  } catch (...) {
    failed = current_error();
  }
  try {
    throw_on_all_ranks(comm_, failed);
    failed.reset();
    try {
      expect_one_data_set();
      if (comm_.rank() == 0) expect_fitting_data();
    } catch (...) {
      failed = current_error();
    }
    throw_on_all_ranks(comm_, failed);
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
    run_on_all_ranks(comm_,
                     [&] { next = std::make_unique<Evaluator>(config_, runtime_, comm_, model_, eval_layout_, log_); });
  } catch (...) {
    config_.data.eval_source = before;
    throw;
  }
  evaluator_ = std::move(next);
  left_evaluation_.reset();
}

void Run::freeze(const std::vector<std::string>& names, bool frozen) {
  last_loss();  // waits for all steps
  for (const std::string& name : names) model_.freeze(name, frozen);
  if (pipeline_->records()) pipeline_->record_again();
}

}  // namespace hctr
