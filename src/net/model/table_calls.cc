#include "net/model/table_calls.h"

#include <optional>

#include "core/device/lockstep.h"
#include "core/device/profiler.h"

namespace hctr {

void run_tables(const Embeddings& tables, const TableGroup& group, Context ctx, const char* part,
                const TableCall& body) {
  constexpr const char* kTable = "embedding";
  if (group.tables.empty()) return;
  Lockstep together(ctx, group.merged && ctx.device().is_cuda());
  std::optional<ProfiledPart> all;  // one profiled part for all tables, because their kernels start together
  if (together.collects()) all.emplace(ctx, part, kTable, "all tables");
  for (const size_t e : group.tables) {
    Context own = together.next(group.tables.size() > 1);
    const auto one =
        all ? std::nullopt : std::optional<ProfiledPart>(std::in_place, own, part, kTable, tables[e]->spec().name);
    body(own, e);
  }
  together.run();
}

void run_tables(const Embeddings& tables, const std::vector<TableGroup>& groups, Context ctx, const char* part,
                const TableCall& body) {
  for (const TableGroup& group : groups) run_tables(tables, group, ctx, part, body);
}

std::vector<TableFacts> table_facts(const Embeddings& tables) {
  std::vector<TableFacts> facts;
  for (const auto& table : tables)
    facts.push_back({.name = table->spec().name,
                     .by_element = table->spec().dim % 4 != 0,
                     .on_disk = table->may_be_on_disk(),
                     .replicated_rows = table->has_replicated_rows(),
                     .exchanges_by_kernels = table->exchanges_by_kernels(),
                     .sends_by_engines = table->sends_gradients_by_engines()});
  return facts;
}

}  // namespace hctr
