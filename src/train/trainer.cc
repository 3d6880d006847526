#include "hctr/trainer.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "core/base/current_error.h"
#include "core/device/current_device.h"
#include "train/training_job.h"

namespace hctr {
namespace {

/// Errors: Error(usage) if the name is neither a layer nor a table, or if the table cannot be frozen during a run.
void expect_freezable(const Config& config, const std::string& name, bool frozen) {
  std::string known;
  const auto is_it = [&](const std::string& one) {
    known += cat(known.empty() ? "'" : ", '", one, "'");
    return one == name;
  };
  for (const EmbeddingEntry& embedding : config.embeddings) {
    const EmbeddingSection& section = embedding.section;
    if (!is_it(section.top())) continue;
    if (section.frozen && !frozen)
      throw Error(Kind::usage,
                  cat("table '", name,
                      "' is in \"frozen\" of the config and has no optimizer states; to freeze and unfreeze during "
                      "training, remove the name there"));
    if (const OptimizerSection& own = section.optimizer ? *section.optimizer : config.optimizer;
        own.update() == UpdateType::lazy_global && !section.frozen)
      throw Error(Kind::usage, cat("table '", name,
                                   "' has \"update_type\": \"LazyGlobal\", which applies skipped steps later; "
                                   "freeze the table with \"frozen\" of the config, or use another update_type"));
    return;
  }
  for (const LayerEntry& layer : config.layers)
    if (is_it(layer.tops[0])) return;
  throw Error(Kind::usage, cat("no layer or table is named '", name, "'; there are ", known));
}

}  // namespace

/// A training job and the state that the trainer's calls share.
class TrainerCore {
 public:
  TrainerCore(const TrainerOptions& of, bool needs_source) : options(of), others(join_processes(options)) {
    or_end_job(options, others.get(),
               [&] { job = std::make_unique<TrainingJob>(options, others.get(), needs_source); });
  }

  bool may_use_gpu() const { return options.device != DeviceChoice::cpu; }
  /// Call before each trainer call. `trains`: false for calls that are allowed after finish(). Errors: the error that
  /// ended training; Error(usage).
  void expect_open(bool trains = true) const {
    if (in_callback) throw Error(Kind::usage, "a callback must not call its trainer");
    if (failed) throw *failed;
    if (job->finished())
      throw Error(Kind::usage, "the resumed run is already finished; set a larger max_iter or num_epochs to continue");
    if (ended && trains) throw Error(Kind::usage, "finish() has ended the run of this trainer");
  }
  /// Returns the result of body(run) on the first rank. An error ends training.
  template <class Result, class Body>
  Result on_ranks(const Body& body) {
    return call<Result>(body, [&](const std::function<void(Run&)>& each) {
      job->on_ranks(each);
      return std::optional<Error>();
    });
  }
  /// Like on_ranks(), for work that either all ranks complete or no rank does. If all ranks throw an error, training
  /// can continue.
  template <class Result, class Body>
  Result try_on_ranks(const Body& body) {
    return call<Result>(body, [&](const std::function<void(Run&)>& each) { return job->try_on_ranks(each); });
  }
  template <class Result, class Body, class OnRanks>
  Result call(const Body& body, const OnRanks& on_all) {
    const CurrentDevice kept(may_use_gpu());
    std::optional<Result> result;
    std::optional<Error> refused;
    try {
      or_end_job(options, others.get(), [&] {
        refused = on_all([&](Run& run) {
          Result own = body(run);
          if (run.rank() == job->first_rank()) result = std::move(own);
        });
      });
    } catch (...) {
      failed = current_error();
      throw;
    }
    if (refused) throw *refused;
    return std::move(*result);
  }
  /// Wraps a callback that may be called during training. The wrapper stores the callback's exception in `thrown` and
  /// stops training.
  Trainer::Callback guarded(Trainer::Callback callback) {
    if (!callback) return nullptr;
    return [this, call = std::move(callback)](const TrainerState& at) {
      in_callback = true;
      bool goes_on = false;
      try {
        goes_on = call(at);
      } catch (...) {
        thrown = std::current_exception();
      }
      in_callback = false;
      return goes_on;
    };
  }
  void freeze(const std::vector<std::string>& names, bool frozen) {
    expect_open();
    for (const std::string& name : names) expect_freezable(job->config(), name, frozen);
    on_ranks<bool>([&](Run& run) {
      run.freeze(names, frozen);
      return true;
    });
  }
  /// Errors: those of GivenSamples; Error(usage) if the samples are on a GPU but must be on the host.
  GivenSamples given_samples(const SamplesView& samples, bool for_metrics) const {
    const std::optional<Device> device = job->only_device();
    const Config& config = job->config();
    GivenSamples given(config.data, samples, device && device->is_cuda() ? std::optional(device->index) : std::nullopt);
    if (given.on_gpu() && given.key_bytes() == 8 && config.solver.input_key_type == KeyType::i32)
      throw Error(Kind::usage, "\"input_key_type\" is \"I32\", but keys on a GPU have 64 bits: pass 32-bit keys");
    const auto needs_groups = [](const Metric& metric) { return metric.type->of_groups; };
    if (given.on_gpu() && for_metrics && std::ranges::any_of(config.solver.eval_metrics.metrics, needs_groups))
      throw Error(Kind::usage, "metrics of groups read keys on the host: pass dense values and keys in host memory");
    return given;
  }
  TrainEnd fit(const FitOptions& until) {
    return on_ranks<TrainEnd>([&](Run& run) { return run.fit(until); });
  }
  TrainSummary finish() {
    if (job->finished()) return *job->finished();
    ended = true;
    TrainSummary summary = on_ranks<TrainSummary>([](Run& run) { return run.finish(); });
    summary.rank = job->first_rank();
    return summary;
  }

  TrainerOptions options;
  std::unique_ptr<Processes> others;
  std::unique_ptr<TrainingJob> job;
  std::optional<Error> failed;
  bool in_callback = false, ended = false;
  std::exception_ptr thrown;  // exception thrown by a callback
};

struct Trainer::State : TrainerCore {
  using TrainerCore::TrainerCore;
};

Trainer::Trainer(const TrainerOptions& options) {
  const CurrentDevice kept(options.device != DeviceChoice::cpu);
  state_ = std::make_unique<State>(options, false);
}

Trainer::~Trainer() {
  const CurrentDevice kept(state_ && state_->may_use_gpu());
  state_.reset();
}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

void Trainer::on_display(Callback callback) { state_->job->on_display(state_->guarded(std::move(callback))); }
void Trainer::on_evaluation(Callback callback) { state_->job->on_evaluation(state_->guarded(std::move(callback))); }

TrainEnd Trainer::fit(const FitOptions& options) {
  state_->expect_open();
  const Config& config = state_->job->config();
  if (options.passes && config.solver.max_iter)
    throw Error(Kind::usage,
                "`passes` needs num_epochs in the config, but the config sets max_iter. With max_iter, a batch can "
                "contain the end of one pass and the start of the next; limit the iterations instead");
  if (config.data.source.empty())
    throw Error(Kind::usage, "the config has no source for fit(); pass samples to step(), or call set_source()");
  if (options.snapshot.value_or(0) > 0 && !state_->job->has_run_folder() && config.solver.snapshot_prefix.empty())
    throw Error(Kind::usage, "snapshots need a run folder or a snapshot_prefix");
  state_->thrown = nullptr;
  const TrainEnd end = state_->fit(options);
  if (end == TrainEnd::stopped)
    state_->on_ranks<bool>([](Run& run) {
      run.finish_checkpoint();
      return true;
    });
  if (state_->thrown) std::rethrow_exception(std::exchange(state_->thrown, nullptr));
  return end;
}

TrainEnd Trainer::step(int64_t iterations) {
  state_->expect_open();
  if (iterations < 0) throw Error(Kind::usage, cat(iterations, " iterations"));
  if (state_->job->config().data.source.empty())
    throw Error(Kind::usage, "the config has no source; pass samples to step(), or call set_source()");
  return state_->on_ranks<TrainEnd>([&](Run& run) { return run.step(iterations); });
}

TrainEnd Trainer::step(const SamplesView& samples) {
  state_->expect_open();
  const GivenSamples given = state_->given_samples(samples, false);
  return state_->on_ranks<TrainEnd>([&](Run& run) { return run.step_on(given); });
}

std::map<std::string, double> Trainer::evaluate() {
  state_->expect_open(false);
  if (state_->job->config().data.eval_source.empty())
    throw Error(Kind::usage, "the config has no eval_source; pass samples, or call set_evaluation_source()");
  return state_->on_ranks<std::map<std::string, double>>([](Run& run) { return run.evaluate_now(); });
}

std::map<std::string, double> Trainer::evaluate(const SamplesView& samples) {
  state_->expect_open(false);
  const GivenSamples given = state_->given_samples(samples, true);
  return state_->on_ranks<std::map<std::string, double>>([&](Run& run) { return run.evaluate_on(given); });
}

TrainerState Trainer::state() {
  state_->expect_open(false);
  return state_->on_ranks<TrainerState>([](Run& run) { return run.state(); });
}

std::vector<ModelTensor> Trainer::inputs() const { return tensors_of_samples(state_->job->config().data); }
std::string Trainer::device() const { return state_->job->device(); }
int64_t Trainer::batchsize() const { return state_->job->config().solver.batchsize; }

void Trainer::set_learning_rate(std::optional<double> rate) {
  state_->expect_open();
  if (rate && !(*rate >= 0 && *rate <= std::numeric_limits<float>::max()))
    throw Error(Kind::usage, cat("the learning rate is ", *rate, "; expected a finite number of at least 0"));
  state_->on_ranks<bool>([&](Run& run) {
    run.set_learning_rate(rate);
    return true;
  });
}

void Trainer::set_source(const std::string& source) {
  state_->expect_open();
  if (source.empty()) throw Error(Kind::usage, "the name of the new source is empty");
  if (state_->job->config().data.follow) throw Error(Kind::usage, "with \"follow\" the source cannot be changed");
  state_->job->set_source(state_->try_on_ranks<std::string>([&](Run& run) {
    run.set_source(source);
    return source;
  }));
}

void Trainer::set_evaluation_source(const std::string& source) {
  state_->expect_open(false);
  if (source.empty()) throw Error(Kind::usage, "the name of the new source is empty");
  state_->job->set_evaluation_source(state_->try_on_ranks<std::string>([&](Run& run) {
    run.set_evaluation_source(source);
    return source;
  }));
}

void Trainer::freeze(const std::vector<std::string>& names) { state_->freeze(names, true); }
void Trainer::unfreeze(const std::vector<std::string>& names) { state_->freeze(names, false); }

std::vector<std::filesystem::path> Trainer::save(const std::string& prefix) {
  state_->expect_open(false);
  if (prefix.empty()) throw Error(Kind::usage, "the prefix for a model is empty");
  return state_->try_on_ranks<std::vector<std::filesystem::path>>([&](Run& run) { return run.save_at(prefix); });
}

void Trainer::load(const WeightFiles& files) {
  state_->expect_open();
  const Config& config = state_->job->config();
  if (files.dense.empty() && files.tables.empty()) throw Error(Kind::usage, "load needs at least one file");
  if (!files.dense_states.empty() && files.dense.empty())
    throw Error(Kind::usage, "optimizer states of dense weights need the weights: also name the file of the weights");
  for (const auto* named : {&files.tables, &files.table_states})
    for (const auto& of_table : *named)
      if (std::ranges::none_of(config.embeddings, [&](const auto& one) { return one.section.top() == of_table.first; }))
        throw Error(Kind::usage, cat("no table is named '", of_table.first, "'"));
  for (const auto& [table, file] : files.table_states)
    if (!files.tables.contains(table))
      throw Error(Kind::usage, cat("states of table '", table, "' need its rows: also name the file of the rows"));
  state_->try_on_ranks<bool>([&](Run& run) {
    run.check_files(files);
    return true;
  });
  state_->on_ranks<bool>([&](Run& run) {
    run.load(files);
    return true;
  });
}

std::filesystem::path Trainer::checkpoint(const std::filesystem::path& folder) {
  state_->expect_open(false);
  if (folder.empty()) throw Error(Kind::usage, "the name of the folder for checkpoints is empty");
  return state_->try_on_ranks<std::filesystem::path>([&](Run& run) { return run.save_checkpoint_in(folder); });
}

TrainSummary Trainer::finish() {
  if (!state_->job->finished()) state_->expect_open();
  return state_->finish();
}

TrainSummary train(const TrainOptions& options) {
  TrainerOptions of;
  static_cast<TrainOptions&>(of) = options;
  TrainerCore trainer(of, true);
  if (!trainer.job->finished()) trainer.fit({});
  return trainer.finish();
}

}  // namespace hctr
