#include "train/delta_publisher.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "config/checked_json.h"
#include "core/base/current_error.h"
#include "core/base/wall_time.h"
#include "hctr/formats.h"
#include "store/table_sources.h"
#include "stream/kafka_library.h"
#include "train/hps_publisher.h"

namespace hctr {
namespace {

constexpr int64_t kSchemaOfPublished = 1;
// maximum seconds per call of the producer; after a timeout the delta is sent from the start
constexpr double kWaitOfCalls = 20;
constexpr std::chrono::milliseconds kFirstPause(200), kLongestPause(10'000);
constexpr const char* kWhatOfPublished = "record of published deltas";

/// Whether a file belongs to the dense part or is the manifest of a model or delta.
bool is_dense_member(const std::string& name) { return name.starts_with("_dense_") || name.starts_with("_model_"); }

StreamedAbout about_of(const ModelManifest& manifest, double written) {
  StreamedAbout about{.run = manifest.run,
                      .iteration = manifest.iteration,
                      .base = manifest.delta ? manifest.delta->base : -1,
                      .written = written};
  for (size_t t = 0; t < manifest.tables.size(); ++t) {
    const SavedTable& table = manifest.tables[t];
    about.tables.push_back({.name = table.name,
                            .dim = table.dim,
                            .by_slot = table.by_slot,
                            .rows = manifest.delta ? manifest.delta->tables[t].rows : -1});
  }
  return about;
}

/// Callbacks that send rows and removed keys. `slots`: empty if rows do not belong to slots.
using SendRows =
    std::function<void(size_t table, std::span<const int64_t>, std::span<const float>, std::span<const int32_t> slots)>;
using SendRemoved = std::function<void(size_t table, std::span<const int64_t>, std::span<const int32_t> slots)>;

void send_delta_table(const ModelManifest& manifest, size_t t, const SendRows& rows, const SendRemoved& removed) {
  for (const auto& [slot, change] : changes_of(manifest, t)) {
    const bool by_slot = manifest.tables[t].by_slot;
    const std::vector<int32_t> slots(by_slot ? std::max(change.keys.size(), change.removed.size()) : 0, slot);
    const auto first = [&](size_t count) { return std::span(slots).first(by_slot ? count : 0); };
    if (!change.keys.empty()) rows(t, change.keys, change.rows, first(change.keys.size()));
    if (!change.removed.empty()) removed(t, change.removed, first(change.removed.size()));
  }
}

void send_whole_table(const ModelManifest& manifest, size_t t, const SendRows& rows) {
  const SavedTable& table = manifest.tables[t];
  const StoreTableSource source{
      .name = table.name,
      .dim = table.dim,
      .by_slot = table.by_slot,
      .model_file = formats::sparse_model_name(manifest.prefix, static_cast<int64_t>(t), manifest.iteration)};
  read_table(source, [&](std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> values) {
    rows(t, keys, values, table.by_slot ? slots : slots.first(0));
  });
}

}  // namespace

DeltaPublisher::DeltaPublisher(const PublishSection& section, std::string prefix, std::string run, int64_t known,
                               const Log& log)
    : section_(section),
      prefix_(std::move(prefix)),
      run_(std::move(run)),
      log_(log),
      state_file_(prefix_ + "_published.json") {
  if (section_.format == StreamFormat::hps) {
    hps_ = std::make_unique<HpsPublisher>(section_);
  } else {
    producer_ = std::make_unique<DeltaProducer>(section_.options());
    producer_->wait_at_most(kWaitOfCalls);
  }
  add_left(known);
  thread_ = std::thread([this] { this->run(); });
}

DeltaPublisher::~DeltaPublisher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (producer_) producer_->stop();
  if (hps_) hps_->stop();
  change_.notify_all();
  thread_.join();
}

/// Queues the deltas that an earlier process of the run has saved and not sent.
void DeltaPublisher::add_left(int64_t known) {
  published_ = known;
  try {
    if (fs::exists(state_file_)) {
      const Json json = read_checked_json(state_file_, kWhatOfPublished, kSchemaOfPublished);
      const Json *const of = json.find("run"), *const topic = json.find("topic"), *const last = json.find("iteration");
      if (of && of->string() && *of->string() == run_ && topic && topic->string() &&
          *topic->string() == section_.topic && last && last->integer())
        published_ = *last->integer();  // files of other runs and topics are ignored
    }
    for (const auto& [iteration, folder] : deltas_at(prefix_))
      if (iteration > published_ && iteration <= known && delta_manifest(folder).run == run_)
        items_.push_back({folder, iteration});
    if (!items_.empty()) log_.info("Publishing ", items_.size(), " deltas that an earlier process did not publish.");
  } catch (const Error& error) {
    log_.warning("cannot publish the deltas of an earlier process: ", error.what());
  }
  write_note();
}

void DeltaPublisher::add(Item item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  change_.notify_all();
}

void DeltaPublisher::add_delta(const fs::path& folder, int64_t iteration) { add({folder, iteration}); }

void DeltaPublisher::add_whole(const fs::path& dense, int64_t iteration) {
  if (section_.whole) add({dense, iteration, true});
}

bool DeltaPublisher::take_needs_whole() {
  const std::lock_guard lock(mutex_);
  return std::exchange(needs_whole_, false);
}

void DeltaPublisher::finish(double seconds) {
  std::unique_lock lock(mutex_);
  if (change_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return items_.empty(); })) return;
  log_.warning(items_.size(), " deltas are not published: no broker has accepted these deltas within ", seconds,
               " s after the end of training. The folders of these deltas remain, and a resumed run publishes them");
}

void DeltaPublisher::run() {
  std::chrono::milliseconds pause = kFirstPause;
  std::unique_lock lock(mutex_);
  for (;;) {
    change_.wait(lock, [&] { return stopping_ || !items_.empty(); });
    if (stopping_) return;
    const Item item = items_.front();
    lock.unlock();
    const bool sent = item.iteration <= published_ || send(item);
    lock.lock();
    if (sent) {
      items_.pop_front();
      change_.notify_all();
      pause = kFirstPause;
    } else {
      change_.wait_for(lock, pause, [&] { return stopping_; });
      pause = std::min(2 * pause, kLongestPause);
    }
  }
}

/// Sends a delta or a full model. Returns false if it must be sent again.
bool DeltaPublisher::send(const Item& item) {
  ModelManifest manifest;
  try {
    if (item.whole) {
      const auto found = manifest_of(item.path);
      if (!found) throw Error(Kind::io, cat("'", item.path.string(), "' has no manifest"));
      manifest = *found;
    } else {
      manifest = delta_manifest(item.path);
    }
    for (const ModelManifest::Member& member : manifest.members) manifest.verify(member.name);
  } catch (const std::exception& error) {
    log_.warning("the ", item.whole ? "model" : "delta", " of iteration ", item.iteration,
                 " is not published: ", error.what(), "; the next publication is a full model");
    const std::lock_guard lock(mutex_);
    needs_whole_ = true;
    return true;
  }
  try {
    send_manifest(manifest, item.whole);
    published_ = item.iteration;
    write_note();
    log_.info("Published the ", item.whole ? "full model" : "delta", " of iteration ", item.iteration, ".");
    if (std::exchange(said_away_, false)) log_.info("The broker accepts deltas again.");
    return true;
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    const std::lock_guard lock(mutex_);
    if (known && known->kind() != Kind::io) {
      log_.warning("the delta of iteration ", item.iteration, " is not published: ", error.what());
      return true;
    }
    if (!stopping_ && !std::exchange(said_away_, true))
      log_.warning("the delta of iteration ", item.iteration, " is not published yet: ", error.what(),
                   "; training continues, and deltas wait in their folders");
    return false;
  }
}

void DeltaPublisher::send_manifest(const ModelManifest& manifest, bool whole) {
  const StreamedAbout about = about_of(manifest, unix_time());
  const SendRows rows = [&](size_t t, std::span<const int64_t> keys, std::span<const float> values,
                            std::span<const int32_t> slots) {
    hps_ ? hps_->rows(about.tables[t], keys, values) : producer_->rows(t, keys, values, slots);
  };
  const SendRemoved removed = [&](size_t t, std::span<const int64_t> keys, std::span<const int32_t> slots) {
    if (producer_) return producer_->removed(t, keys, slots);
    if (hps_->first_removed())
      log_.warning("removed keys are not published: messages of HugeCTR's parameter server cannot express removals");
  };
  if (producer_) producer_->begin(about);
  for (size_t t = 0; t < manifest.tables.size(); ++t)
    whole ? send_whole_table(manifest, t, rows) : send_delta_table(manifest, t, rows, removed);
  if (hps_) return hps_->flush();
  const auto file = [&](const std::string& name) {
    producer_->file(name, read_text(manifest.prefix + name, "file of a model"));
  };
  for (const ModelManifest::Member& member : manifest.members)
    if (is_dense_member(member.name)) file(member.name);
  file(manifest.name_of(manifest.path));
  producer_->end();
}

void DeltaPublisher::write_note() {
  Json json;
  json.set("schema", kSchemaOfPublished);
  json.set("run", run_);
  json.set("topic", section_.topic);
  json.set("iteration", published_);
  try {
    write_text(state_file_, with_checksum(json));
  } catch (const Error& error) {
    log_.warning("'", state_file_.string(), "' cannot be written, so a resumed run may publish deltas twice, which ",
                 "servers skip: ", error.what());
  }
}

}  // namespace hctr
