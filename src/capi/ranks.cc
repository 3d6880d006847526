#include "capi/rank_handle.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "capi/call.h"

namespace hctr::capi {
namespace {

JoinOptions join_of(const hctr_join& from) {
  JoinOptions to;
  if (from.ranks != 0) to.ranks = from.ranks;
  if (from.address) to.address = from.address;
  to.port = from.port;
  to.process = from.process;
  if (from.processes != 0) to.processes = from.processes;
  if (from.secret) to.secret = from.secret;
  if (from.call_seconds != 0) to.waits.call_seconds = std::max(from.call_seconds, 0);
  if (from.join_seconds != 0) to.waits.join_seconds = from.join_seconds;
  if (from.silence_seconds != 0) to.waits.silence_seconds = from.silence_seconds;
  if (from.environment)
    to.surroundings.environment = [get = from.environment, user = from.environment_user](const char* name) {
      const char* const value = get(user, name);
      return value ? std::optional<std::string>(value) : std::nullopt;
    };
  to.surroundings.log = log_sink(from.log, from.log_user);
  return to;
}

}  // namespace
}  // namespace hctr::capi

using hctr::capi::call;
using hctr::capi::expect_given;

hctr_status hctr_ranks_create(const hctr_join* join, hctr_rank** ranks) {
  return call([&] {
    expect_given(ranks, "hctr_ranks_create(): the pointer to the handles");
    const auto given = hctr::capi::read_struct(join, "hctr_join");
    std::vector<std::unique_ptr<hctr_rank>> made;
    for (const hctr::EmbeddingRank& rank : hctr::EmbeddingRank::of_processes(hctr::capi::join_of(given)))
      made.push_back(std::make_unique<hctr_rank>(hctr_rank{rank}));
    for (size_t r = 0; r < made.size(); ++r) ranks[r] = made[r].release();
  });
}

void hctr_rank_destroy(hctr_rank* rank) { delete rank; }

hctr_status hctr_rank_number(const hctr_rank* rank, int32_t* number, int32_t* of) {
  return call([&] {
    expect_given(rank, "the hctr_rank");
    if (number) *number = rank->rank.rank();
    if (of) *of = rank->rank.size();
  });
}
