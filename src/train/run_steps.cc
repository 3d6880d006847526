// The steps of a run, and the work after each step.
#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "core/comm/rank_list.h"
#include "score/batch_reading.h"
#include "train/run.h"

namespace hctr {
namespace {

constexpr std::chrono::seconds kUntilSaid(20);
constexpr int kRoundsUntilSaid = kUntilSaid / kToWaitForData;

bool is_due(int64_t interval, int64_t iteration) { return interval > 0 && iteration % interval == 0; }

}  // namespace

TrainEnd Run::fit(const FitOptions& options) {
  const SolverSection& solver = config_.solver;
  every_ = {options.display.value_or(solver.display), options.eval_interval.value_or(solver.eval_interval),
            options.snapshot.value_or(solver.snapshot)};
  // A stop may have interrupted the evaluation of the last iteration, in this process or before the checkpoint.
  const bool left = left_evaluation_ || (from_ && !called_);
  if (begin_call(options.iteration || options.passes ? End{options.iteration, options.passes} : end_of_config()))
    return end_call();
  if (left && is_due(every_.eval, now_.iterations) && now_.evaluated_at != now_.iterations) evaluate();
  train(On::passes, [&](double rate) { after_step(rate); });
  if (stopping_ && !complete()) {
    settle();
    leave_stopped();
  }
  return end_call();
}

TrainEnd Run::step(int64_t steps) {
  if (begin_call({.iteration = now_.iterations + steps})) return end_call();
  const bool ended = train(On::pass, [&](double) {
    saver_.poll_delta();
    checkpoints_->poll(now_.iterations);
  });
  const TrainEnd end = end_call();
  return ended && end == TrainEnd::reached ? TrainEnd::pass_ended : end;
}

bool Run::begin_call(const End& end) {
  report_->go_on();
  end_ = end;
  const bool first = !std::exchange(called_, true);
  if (first) return false;
  now_.stopped_at.reset();
  stopping_ = comm_.any(options_.stop && *options_.stop != 0);
  return stopping_;
}

TrainEnd Run::end_call() {
  report_->pause();
  return stopping_ ? TrainEnd::stopped : now_.stopped_at ? TrainEnd::metric : TrainEnd::reached;
}

bool Run::train(On data, const std::function<void(double)>& after) {
  if (data != On::given)
    save_on_error("reading the source", [&] { run_on_all_ranks(comm_, [&] { pipeline_->read_source(); }); });
  const auto begin_pass = [&] {
    save_on_error("starting another pass over the data",
                  [&] { run_on_all_ranks(comm_, [&] { pipeline_->restart(); }); });
    pass_ended_ = false;
  };
  while (!finished() && !stopping_) {
    if (pass_ended_ && data != On::given) begin_pass();
    const double rate = next_rate();
    const auto samples = save_on_error(cat("training iteration ", now_.iterations + 1), [&] { return step(rate); });
    if (!samples) {
      if (stopping_) break;  // the run was stopped before a batch was available
      if (data == On::given) return true;
      ++now_.epochs;
      pass_ended_ = true;
      // throws if the first pass has given no batch, because another pass would not give one either
      if (now_.iterations == 0 && !feed_) expect_trained();
      if (data == On::pass) return true;
      continue;
    }
    now_.samples += *samples;
    ++now_.iterations;
    trained_ = true;
    if (profile_)
      for (const std::string& line : profile_->after_step(waits_after(now_.iterations))) report_->event(line);
    save_on_error(cat("reporting or saving iteration ", now_.iterations), [&] { after(rate); });
  }
  return false;
}

bool Run::passed(const End& end) const {
  return (feed_ && now_.epochs > 0) || (end.iteration && now_.iterations >= *end.iteration) ||
         (end.passes && now_.epochs >= *end.passes);
}

void Run::settle() {
  end_profile();
  now_.loss = last_loss();
  check_finite(now_.loss);
}

void Run::end_profile() {
  if (!profile_) return;
  for (const std::string& line : profile_->finish()) report_->event(line);
  if (!profile_->done()) report_->warning("--profile: the run has too few steps to measure");
  profile_.reset();
}

bool Run::leave_stopped() {
  if (std::exchange(left_stopped_at_, now_.iterations) != now_.iterations) in_checkpoint_ = save_stopped_state();
  return in_checkpoint_;
}

std::optional<int64_t> Run::step(double rate) {
  if (profile_) profile_->before_fetch();
  if (!fetch()) {
    if (profile_) profile_->pause();
    return std::nullopt;
  }
  if (profile_) profile_->before_step();
  return pipeline_->step(now_.iterations, rate);
}

bool Run::fetch() {
  using Fetched = StepPipeline::Fetched;
  for (int rounds = 1;; ++rounds) {
    Fetched found = Fetched::end;
    const std::optional<Error> failed = error_of([&] {
      found = pipeline_->fetch(options_.stop);
      expect_memory();
    });
    const bool diverged = pipeline_->steps_not_finite() > most_not_finite_ || pipeline_->spoiled();
    const bool stop = options_.stop && *options_.stop != 0, waits = found == Fetched::waiting;
    if (!comm_.any(failed || diverged || stop || waits || follow_news())) return found == Fetched::batch;
    if (comm_.any(diverged)) throw_diverged();
    throw_on_all_ranks(comm_, failed);
    stopping_ = comm_.any(stop);
    if (feed_ && !stopping_) {
      exchange_new_files(waits);
      if (comm_.any(waits)) continue;
      return found == Fetched::batch;
    }
    if (!comm_.any(waits || found == Fetched::stopped)) return found == Fetched::batch;
    if (stopping_) {
      report_->event("Data arrived after");
      return false;
    }
    if (rounds == kRoundsUntilSaid) say_who_waits(waits);
  }
}

void Run::expect_memory() {
  if (!options_.reserve) return;
  if (options_.reserve->released()) throw Error(Kind::device, std::string(kOutOfHostMemory));
  to_save_.grow_to(model_->bytes_to_save());
}

void Run::say_who_waits(bool waits) {
  const std::vector<std::string> waiting = comm_.gather(waits ? "1" : "", 0);
  std::set<int> ranks;
  for (size_t r = 0; r < waiting.size(); ++r)
    if (!waiting[r].empty()) ranks.insert(static_cast<int>(r));
  if (comm_.rank() == 0)
    report_->event(cat("Waiting for data", comm_.size() > 1 ? cat(" by ", rank_list(ranks)) : "", ", for ",
                       kUntilSaid.count(), " s; training continues when data arrive."));
}

bool Run::waits_after(int64_t iteration) const {
  const SolverSection& solver = config_.solver;
  return is_due(every_.display, iteration) || is_due(every_.eval, iteration) || is_due(every_.snapshot, iteration) ||
         is_due(solver.snapshot_delta, iteration) || is_due(solver.checkpoint.every, iteration);
}

bool Run::may_save() { return !now_.stopped_at && saver_.has_place() && has_trained(); }

void Run::after_step(double rate) {
  const int64_t iteration = now_.iterations;
  report_->queued(now_.samples);
  if (is_due(every_.display, iteration)) display(rate);
  if (is_due(every_.eval, iteration)) evaluate();
  if (is_due(every_.snapshot, iteration) && may_save()) {
    check_finite(last_loss());
    if (saver_.snapshot(iteration, pipeline_->key_bytes())) {
      const auto& files = saver_.last()->files;
      report_->event(
          cat("Snapshot: ", files.front().string(), files.size() > 1 ? cat(" and ", files.size() - 1, " more") : ""));
      report_unsaved();
    }
  } else if (is_due(config_.solver.snapshot_delta, iteration) && may_save()) {
    check_finite(last_loss());
    saver_.save_delta(iteration, pipeline_->key_bytes());
  }
  saver_.poll_delta();
  checkpoints_->poll(iteration);
  // The checkpoint comes last, so that a resumed run does not repeat the preceding work.
  if (checkpoints_->due(iteration) || now_.best_iteration == iteration) save_checkpoint();
}

int Run::stop_signal() {
  int largest = 0;
  for (const std::string& text : comm_.gather(cat(options_.stop ? options_.stop->load() : 0), 0))
    largest = std::max(largest, std::stoi(text));
  return std::stoi(comm_.broadcast(cat(largest), 0));
}

Error Run::with_model(const Error& error, const std::string& what) {
  if (diverged_ || std::exchange(saved_after_error_, true)) return error;
  if (now_.iterations == 0) return error.with_context(what);
  if (options_.reserve) options_.reserve->release();
  try {
    note_unasked_model();
  } catch (const std::exception&) {  // saving the model matters more than the note about it
  }
  const std::string saved = saver_.save_after_error(error, now_.iterations, pipeline_->key_bytes());
  try {
    if (saver_.last() && saver_.last()->iteration == now_.iterations) replace_unasked_models(ModelOfStep::unasked);
  } catch (const std::exception&) {
  }
  return error.with_context(cat(what, "; ", saved));
}

}  // namespace hctr
