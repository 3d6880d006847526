#include "app/store_follow.h"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "app/stop_signals.h"
#include "core/base/expect.h"
#include "hctr/store_stream.h"
#include "infer/store_models.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr std::chrono::milliseconds kBetweenLines(200);
constexpr std::chrono::seconds kLastingTrouble(5);  // messages of several partitions come in any order

struct FollowedModel {
  std::string name;
  std::unique_ptr<StoreStream> stream;
  int64_t applied = 0;
  std::string trouble{}, said{};
  std::chrono::steady_clock::time_point since{};  // that the trouble is this one
};

void print_stream_line(const Store& store, const FollowedModel& model, const StoreStreamStatistics& now) {
  for (const StoreModelStatistics& one : store.models())
    if (one.model == model.name && one.active) {
      print(cat("model '", model.name, "'"));
      if (one.iteration >= 0) print(cat(" iteration ", one.iteration));
      print(cat(", updates ", now.applied, ", rows ", now.rows, ", ", now.age_seconds, " s old, ", now.stream.behind,
                " messages to read\n"));
    }
}

void note_trouble(FollowedModel& model, const std::string& trouble) {
  const auto now = std::chrono::steady_clock::now();
  if (trouble != model.trouble) {
    model.trouble = trouble;
    model.since = now;
  }
  if (model.trouble == model.said || now - model.since < kLastingTrouble) return;
  print_note(cat("stream of model '", model.name, "': ", trouble.empty() ? "the stream works again" : trouble, "\n"));
  model.said = trouble;
}

}  // namespace

int follow_streams(Store& store, const StoreConfig& config) {
  const std::atomic<int>& stop = catch_stop_signals();
  std::vector<FollowedModel> models;
  for (const StoreModelSection& section : config.models) {
    if (!section.stream.given) continue;
    models.push_back({section.name, std::make_unique<StoreStream>(store, section.name, section.stream_options())});
    models.back().stream->start();
  }
  if (models.empty()) throw Error(Kind::config, "store follow: no model of the config has a \"stream\"");
  for (FollowedModel& model : models) print_stream_line(store, model, model.stream->statistics());
  while (stop == 0) {
    for (FollowedModel& model : models) {
      const StoreStreamStatistics now = model.stream->statistics();
      if (!now.error.empty()) throw Error(Kind::data, cat("model '", model.name, "': ", now.error));
      if (now.applied != model.applied) print_stream_line(store, model, now);
      model.applied = now.applied;
      note_trouble(model, stream_trouble(now));
    }
    std::this_thread::sleep_for(kBetweenLines);
  }
  return 0;
}

}  // namespace hctr
