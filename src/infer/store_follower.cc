#include "infer/store_follower.h"

#include <exception>

#include "core/base/expect.h"
#include "infer/store_models.h"

namespace hctr {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(200);
constexpr int kLooksPerFileLook = 5;
constexpr std::chrono::seconds kLasting(5);

}  // namespace

StoreFollower::StoreFollower(Store& store, const StoreConfig& config, const Log& log)
    : store_(store),
      config_(config),
      refreshes_(!config.shared_memory.empty() ||
                 (config.rocksdb && config.rocksdb->open == StoreRocksOptions::Opening::follow)),
      log_(log) {
  for (const StoreModelSection& section : config.models) models_.push_back({.model = section.name});
  if (config.writable() && store.writable()) start_updates();
  thread_ = std::thread([this] { run(); });
}

void StoreFollower::start_updates() {
  for (size_t m = 0; m < models_.size(); ++m) {
    const StoreModelSection& section = config_.models[m];
    if (!section.stream.given) {
      models_[m].updates = section.updates;
    } else if (!models_[m].stream) {
      auto stream = std::make_unique<StoreStream>(store_, section.name, section.stream_options());
      const std::lock_guard lock(streams_);
      models_[m].stream = std::move(stream);
    }
  }
  for (const Followed& model : models_)
    if (model.stream) model.stream->start();
  updates_ = true;
}

StoreFollower::~StoreFollower() {
  stops_ = true;
  thread_.join();
}

std::vector<StoreFollower::Stream> StoreFollower::streams() const {
  const std::lock_guard lock(streams_);
  std::vector<Stream> all;
  for (const Followed& model : models_)
    if (model.stream) all.push_back({model.model, model.stream->statistics()});
  return all;
}

void StoreFollower::run() {
  for (int look = 0; !stops_; ++look) {
    for (Followed& model : models_) {
      if (model.stream) {
        const StoreStreamStatistics now = model.stream->statistics();
        note(model.problem, cat("stream of model '", model.model, "'"),
             now.error.empty() ? stream_trouble(now) : cat("updates have ended: ", now.error));
      } else if (!model.updates.empty() && look % kLooksPerFileLook == 0) {
        look_at_files(model);
      }
    }
    if (refreshes_) {
      std::string problem;
      try {
        store_.refresh();
        if (!updates_ && config_.writable() && store_.writable()) {
          store_.loaded();  // the previous process may have ended while it loaded models
          start_updates();
          log_.info("this process now updates the shared memory '", config_.shared_memory, "'");
        }
      } catch (const std::exception& error) {
        problem = error.what();
      }
      note(refresh_, "store", problem);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void StoreFollower::look_at_files(Followed& model) {
  std::string problem;
  try {
    store_.update(model.model, model.updates);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  note(model.problem, cat("updates of model '", model.model, "'"), problem);
}

void StoreFollower::note(Problem& problem, const std::string& what, const std::string& now) {
  const auto time = std::chrono::steady_clock::now();
  if (now != problem.now) {
    problem.now = now;
    problem.since = time;
  }
  if (problem.now == problem.reported || time - problem.since < kLasting) return;
  log_.warning(what, ": ", now.empty() ? "the problem no longer occurs" : now);
  problem.reported = now;
}

}  // namespace hctr
