#include "engine/placement/plan_file.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/progress.h"

namespace hctr {
namespace {

constexpr int64_t kSchema = 1;
constexpr const char *kAll = "all", *kReplicated = "every rank";

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw Error(Kind::config, cat("the plan '", file, "' ", why, "; remove \"placement_file\" to make a new plan"));
}

template <class T>
const T& part(const Json& json, const char* name, const T* (Json::*as)() const, const std::string& file) {
  const Json* found = json.find(name);
  const T* value = found ? (found->*as)() : nullptr;
  if (!value) refuse(file, cat("has no \"", name, "\", or has the wrong type"));
  return *value;
}

/// Checks the replicated slots of a plan: the table must permit replication, all pieces of a slot must be replicated
/// together, and at least one slot must not be replicated. Errors: Error(config).
void expect_slots_on_every_rank(const Placement& placement, const PlanTable& table, const std::string& file) {
  if (!placement.some_replicated()) return;
  if (!table.may_be_replicated || !table.identity_by_slot)
    refuse(file,
           cat("replicates slots of table '", table.name, "', which its \"placement\" or its index does not allow"));
  bool all = true;
  for (size_t s = 0; s < placement.owners.size(); ++s) {
    const auto first = static_cast<int64_t>(s) / placement.pieces * placement.pieces;
    if (placement.replicated(first) != placement.replicated(static_cast<int64_t>(s)))
      refuse(file, cat("replicates only some pieces of slot ", first / placement.pieces, " of table '", table.name,
                       "', but not all"));
    all = all && placement.replicated(static_cast<int64_t>(s));
  }
  if (all)
    refuse(file, cat("replicates every slot of table '", table.name, "': write \"owners\": \"every rank\" instead"));
}

Placement owners_of(const Json& json, const PlanTable& table, int64_t ranks, const std::string& file) {
  const Json* given = json.find("owners");
  const bool everywhere = given && given->string() && *given->string() == kReplicated;
  if (everywhere && !table.may_be_replicated)
    refuse(file,
           cat("replicates the rows of table '", table.name, "', which its \"placement\" or its index does not allow"));
  if (!everywhere && table.rule == PlacementRule::data_parallel)
    refuse(file, cat("does not replicate the rows of table '", table.name,
                     "', but the config's \"placement\" is \"data_parallel\""));
  if (everywhere) return {};
  Placement placement{ranks, {}, part(json, "pieces", &Json::integer, file)};
  const int64_t pieces = placement.pieces;
  if (pieces < 1 || (pieces > 1 && (!table.may_be_cut || pieces > table.dim || table.dim % (4 * pieces) != 0)))
    refuse(file, cat("splits the rows of table '", table.name, "' into ", pieces, " pieces, but ",
                     pieces > 0 && table.may_be_cut
                         ? cat("its ", table.dim,
                               " elements per row do not divide into that many pieces of a multiple of 4 elements")
                         : "these rows cannot be split"));
  const Json::Array& owners = part(json, "owners", &Json::array, file);
  if (const size_t wanted = table.slots.size() * static_cast<size_t>(pieces); owners.size() != wanted)
    refuse(file,
           cat("has ", owners.size(), " owners for table '", table.name, "', but the config's slots need ", wanted));
  for (const Json& owner : owners) {
    const int64_t* rank = owner.integer();
    if (owner.string() && *owner.string() == kAll)
      placement.owners.push_back(Placement::kSpread);
    else if (owner.string() && *owner.string() == kReplicated)
      placement.owners.push_back(Placement::kReplicated);
    else if (rank && 0 <= *rank && *rank < ranks)
      placement.owners.push_back(static_cast<int32_t>(*rank));
    else
      refuse(file, cat("assigns a slot of table '", table.name, "' to ", owner.text(),
                       "; an owner is a rank from 0 to ", ranks - 1, ", or \"all\", or \"every rank\""));
  }
  expect_slots_on_every_rank(placement, table, file);
  if (!table.identity_by_slot && std::any_of(placement.owners.begin(), placement.owners.end(),
                                             [&](int32_t o) { return o != placement.owners[0]; }))
    refuse(file, cat("assigns the slots of table '", table.name,
                     "' to different owners, although the slots share "
                     "rows"));
  const Placement without =
      Placement::without_plan(table.rule, table.identity_by_slot, static_cast<int64_t>(table.slots.size()), ranks);
  for (int64_t s = 0; table.as_without_plan && s < static_cast<int64_t>(table.slots.size()); ++s)
    if (placement.spread(s) != without.spread(s) ||
        (!without.spread(s) && placement.owners[static_cast<size_t>(s)] != without.owners[static_cast<size_t>(s)]))
      refuse(file, cat("moves slot ", s, " of table '", table.name,
                       "', but a table with a row limit must have the same placement as without a plan"));
  return placement;
}

std::string slots_text(const RankPlan& share) {
  std::string text;
  for (size_t i = 0; i < share.slots.size();) {
    size_t end = i + 1;
    while (end < share.slots.size() && share.slots[end] == share.slots[end - 1] + 1) ++end;
    text += cat(text.empty() ? "" : " ", share.slots[i],
                end - i > 2    ? "-"
                : end - i == 2 ? " "
                               : "",
                end - i > 1 ? cat(share.slots[end - 1]) : "");
    i = end;
  }
  if (share.cut_slots > 0) text += cat(text.empty() ? "" : ", ", "columns of ", share.cut_slots);
  if (share.spread_slots > 0) text += cat(text.empty() ? "" : ", ", "keys of ", share.spread_slots);
  return text;
}

std::string columns(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines)
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  std::string text;
  for (const auto& line : lines) {
    text += " ";
    for (size_t c = 0; c < line.size(); ++c)
      text += cat(" ", line[c], c + 1 < line.size() ? std::string(widths[c] - line[c].size() + 1, ' ') : "");
    text += "\n";
  }
  text.pop_back();
  return text;
}

std::string milliseconds(double seconds) { return formatted("%.3f ms", seconds * 1e3); }

}  // namespace

Json plan_to_json(const PlanProblem& problem, const std::vector<Placement>& placements) {
  const MachineSpeeds& speeds = problem.speeds;
  Json tables(Json::Array{}), shares(Json::Array{});
  for (size_t t = 0; t < placements.size(); ++t) {
    if (placements[t].replicated_on(problem.ranks)) {
      tables.add(Json(Json::Object{{"name", problem.tables[t].name}, {"owners", kReplicated}}));
      continue;
    }
    Json owners(Json::Array{});
    const int64_t slots = static_cast<int64_t>(problem.tables[t].slots.size()) * placements[t].pieces;
    for (int64_t s = 0; s < slots; ++s)
      owners.add(placements[t].spread(s)       ? Json(kAll)
                 : placements[t].replicated(s) ? Json(kReplicated)
                                               : Json(int64_t{placements[t].owners[static_cast<size_t>(s)]}));
    tables.add(Json(Json::Object{
        {"name", problem.tables[t].name}, {"pieces", placements[t].pieces}, {"owners", std::move(owners)}}));
  }
  for (const RankPlan& share : rank_plans(problem, placements)) {
    Json slots(Json::Array{});
    for (const int32_t slot : share.slots) slots.add(int64_t{slot});
    shares.add(Json(Json::Object{{"rank", int64_t{share.rank}},
                                 {"table", share.table},
                                 {"slots", std::move(slots)},
                                 {"cut_slots", share.cut_slots},
                                 {"spread_slots", share.spread_slots},
                                 {"rows", share.rows},
                                 {"bytes", share.bytes},
                                 {"seconds_a_step", share.seconds}}));
  }
  return Json(Json::Object{{"schema", kSchema},
                           {"ranks", problem.ranks},
                           {"speeds", Json(Json::Object{{"link_bytes_per_second", speeds.link},
                                                        {"link_seconds", speeds.link_seconds},
                                                        {"sums_bytes_per_second", speeds.sums},
                                                        {"sums_seconds", speeds.sums_seconds},
                                                        {"rows_bytes_per_second", speeds.rows},
                                                        {"memory_bytes", speeds.memory}})},
                           {"tables", std::move(tables)},
                           {"shares", std::move(shares)}});
}

std::vector<Placement> plan_from_json(const Json& json, const std::string& file, const PlanProblem& problem) {
  if (const int64_t schema = part(json, "schema", &Json::integer, file); schema != kSchema)
    refuse(file, cat("is of schema ", schema, ", but this version reads ", kSchema));
  if (const int64_t ranks = part(json, "ranks", &Json::integer, file); ranks != problem.ranks)
    refuse(file, cat("is for ", ranks, ranks == 1 ? " rank" : " ranks", ", but this run is on ", problem.ranks));
  const Json::Array& tables = part(json, "tables", &Json::array, file);
  std::vector<Placement> placements;
  for (const PlanTable& table : problem.tables) {
    const auto found = std::find_if(tables.begin(), tables.end(), [&](const Json& each) {
      return part(each, "name", &Json::string, file) == table.name;
    });
    if (found == tables.end()) refuse(file, cat("has no table '", table.name, "'"));
    placements.push_back(owners_of(*found, table, problem.ranks, file));
  }
  if (tables.size() != problem.tables.size())
    refuse(file, cat("has ", tables.size(), " tables, but the config has ", problem.tables.size()));
  return placements;
}

std::string plan_text(const PlanProblem& problem, const std::vector<Placement>& placements) {
  std::vector<std::vector<std::string>> lines = {{"rank", "table", "rows", "bytes", "a step", "slots"}};
  for (const RankPlan& share : rank_plans(problem, placements)) {
    const auto known = [](int64_t number) {
      return number > 0 ? with_unit_prefix(static_cast<double>(number)) : std::string("?");
    };
    lines.push_back({cat(share.rank), share.table, known(share.rows), known(share.bytes), milliseconds(share.seconds),
                     slots_text(share)});
  }
  return columns(lines);
}

}  // namespace hctr
