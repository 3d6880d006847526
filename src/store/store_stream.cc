#include "hctr/store_stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/expect.h"
#include "core/base/wall_time.h"
#include "hctr/store.h"
#include "stream/hps_source.h"

namespace hctr {
namespace {

constexpr double kLookSeconds = 0.2;                  // seconds between checks for stop() and for a new version
constexpr std::chrono::seconds kBetweenFileLooks(1);  // interval between checks of files while a delta is missing

}  // namespace

struct StoreStream::State {
  Store& store;
  std::string model;
  StoreStreamOptions options;

  std::string version;  // the version that the source belongs to
  std::unique_ptr<DeltaSource> deltas;
  std::optional<HpsSource> rows;
  std::chrono::steady_clock::time_point looked_at_files{};
  double newest = -1;

  std::thread thread;
  std::atomic<bool> stopping{false};
  mutable std::mutex mutex;  // guards `published`
  StoreStreamStatistics published{};

  StoreModelStatistics about() const;
  void open();
  bool take(double seconds);
  bool take_delta(double seconds);
  bool take_rows(double seconds);
  bool look_at_files();
  bool caught_up(double seconds) { return deltas ? deltas->caught_up(seconds) : rows->caught_up(seconds); }
  void publish(int64_t applied, int64_t changed, double written);
};

StoreModelStatistics StoreStream::State::about() const {
  for (StoreModelStatistics& one : store.models())
    if (one.model == model && one.active) return one;
  store.view(model);  // for an unknown model, throws an error that lists the known models
  throw Error(Kind::usage, cat("the store has no model '", model, "'"));
}

/// Opens the source of the active version. Each version has its own stream position.
void StoreStream::State::open() {
  const StoreModelStatistics now = about();
  if (now.version == version && (deltas || rows)) return;
  version = now.version;
  const std::string position = store.position(model);
  if (!options.hps) {
    deltas.reset();
    deltas = std::make_unique<DeltaSource>(options.stream, position, store.run(model), now.iteration);
    return;
  }
  std::vector<HpsSource::Table> tables;
  for (const StoreView::Table& table : store.view(model).tables()) {
    if (table.by_slot)
      throw Error(Kind::config, cat("table '", table.name,
                                    "' identifies rows by slot and key, which messages of HugeCTR's parameter server "
                                    "cannot express"));
    tables.push_back({table.name, table.dim});
  }
  rows.emplace(options.stream, model, std::move(tables), options.key_bytes, position);
}

void StoreStream::State::publish(int64_t applied, int64_t changed, double written) {
  const StreamStatistics now = deltas ? deltas->statistics() : rows->statistics();
  const std::lock_guard lock(mutex);
  published.stream = now;
  published.applied += applied;
  published.rows += changed;
  if (written >= 0) newest = written;
}

bool StoreStream::State::look_at_files() {
  if (options.updates.empty() || deltas->statistics().held == 0) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_at_files < kBetweenFileLooks) return false;
  looked_at_files = now;
  if (store.update(model, options.updates) == 0) return false;
  deltas->skip_to(about().iteration);
  return true;
}

bool StoreStream::State::take_delta(double seconds) {
  const auto delta = deltas->next(seconds);
  if (!delta) {
    const bool from_files = look_at_files();
    publish(from_files, 0, -1);
    return from_files;
  }
  store.apply(model, *delta, deltas->position());
  deltas->taken();
  deltas->stored();
  int64_t changed = 0;
  for (const StreamedDelta::Rows& table : delta->tables)
    changed += static_cast<int64_t>(table.keys.size() + table.removed.size());
  publish(1, changed, delta->about.written);
  return true;
}

bool StoreStream::State::take_rows(double seconds) {
  std::vector<HpsSource::Rows> all;
  if (!rows->next(seconds, all)) {
    publish(0, 0, -1);
    return false;
  }
  const std::vector<StoreView::Table> tables = store.view(model).tables();
  std::vector<StoreTableUpdate> updates;
  int64_t changed = 0;
  for (size_t t = 0; t < all.size(); ++t)
    if (!all[t].keys.empty()) {
      updates.push_back({.table = tables[t].name, .keys = all[t].keys, .rows = all[t].rows.data()});
      changed += static_cast<int64_t>(all[t].keys.size());
    }
  try {
    store.apply(model, updates, rows->position());
  } catch (...) {
    rows.reset();  // the next call resumes from the stored position
    throw;
  }
  rows->stored();
  publish(1, changed, unix_time());
  return true;
}

bool StoreStream::State::take(double seconds) {
  open();
  return rows ? take_rows(seconds) : take_delta(seconds);
}

StoreStream::StoreStream(Store& store, std::string model, StoreStreamOptions options)
    : state_(new State{.store = store,
                       .model = std::move(model),
                       .options = std::move(options),
                       .version = {},
                       .deltas = {},
                       .rows = {},
                       .thread = {}}) {
  state_->open();
}

StoreStream::~StoreStream() { stop(); }

int64_t StoreStream::apply(double seconds) {
  const auto end = after_seconds(seconds);
  int64_t applied = 0;
  for (bool first = true; first || ms_until(end) > 0; first = false)
    applied += state_->take(std::min(kLookSeconds, static_cast<double>(ms_until(end)) / 1000));
  return applied;
}

int64_t StoreStream::catch_up(double seconds) {
  int64_t applied = 0;
  state_->open();
  while (!state_->caught_up(seconds)) applied += state_->take(kLookSeconds);
  while (state_->take(0)) ++applied;  // applies data that are already received
  return applied;
}

void StoreStream::start() {
  if (state_->thread.joinable()) return;
  state_->stopping = false;
  state_->thread = std::thread([s = state_.get()] {
    try {
      while (!s->stopping) s->take(kLookSeconds);
    } catch (const std::exception& error) {
      const std::lock_guard lock(s->mutex);
      s->published.error = error.what();
    }
  });
}

void StoreStream::stop() {
  state_->stopping = true;
  if (state_->thread.joinable()) state_->thread.join();
}

StoreStreamStatistics StoreStream::statistics() const {
  const std::lock_guard lock(state_->mutex);
  StoreStreamStatistics all = state_->published;
  if (state_->newest >= 0) all.age_seconds = unix_time() - state_->newest;
  return all;
}

}  // namespace hctr
