#include "app/store_follow.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "app/stop_signals.h"
#include "core/base/expect.h"
#include "infer/store_follower.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr std::chrono::milliseconds kBetweenLines(200);

void print_stream_line(const Store& store, const StoreFollower::Stream& stream) {
  const StoreStreamStatistics& now = stream.statistics;
  for (const StoreModelStatistics& one : store.models())
    if (one.model == stream.model && one.active) {
      print(cat("model '", stream.model, "'"));
      if (one.iteration >= 0) print(cat(" iteration ", one.iteration));
      print(cat(", updates ", now.applied, ", rows ", now.rows, ", ", now.age_seconds, " s old, ", now.stream.behind,
                " messages to read\n"));
    }
}

}  // namespace

int follow_streams(Store& store, const StoreConfig& config, const Log& log) {
  if (std::ranges::none_of(config.models, [](const StoreModelSection& model) { return model.stream.given; }))
    throw Error(Kind::config, "store follow: no model of the config has a \"stream\"");
  const std::atomic<int>& stop = catch_stop_signals();
  const StoreFollower follower(store, config, log);
  // for each model, the number of applied updates when its last line was printed
  std::map<std::string, int64_t> applied;
  while (stop == 0) {
    for (const StoreFollower::Stream& stream : follower.streams()) {
      if (!stream.statistics.error.empty())
        throw Error(Kind::data, cat("model '", stream.model, "': ", stream.statistics.error));
      const auto [printed, first] = applied.emplace(stream.model, stream.statistics.applied);
      if (first || printed->second != stream.statistics.applied) print_stream_line(store, stream);
      printed->second = stream.statistics.applied;
    }
    std::this_thread::sleep_for(kBetweenLines);
  }
  return 0;
}

}  // namespace hctr
