// Calls of several tables. Kernels of the same kind may be launched as one.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/exchange/rank_embedding.h"
#include "net/plan/step_plan.h"

namespace hctr {

using Embeddings = std::vector<std::unique_ptr<Embedding>>;
using TableCall = std::function<void(Context&, size_t table)>;

/// body(context, e) for every table e of the group, as `part` of a profile.
void run_tables(const Embeddings&, const TableGroup&, Context, const char* part, const TableCall& body);
/// The same for several groups, sequentially.
void run_tables(const Embeddings&, const std::vector<TableGroup>&, Context, const char* part, const TableCall& body);

/// The facts of tables that a plan depends on. The same on every rank.
std::vector<TableFacts> table_facts(const Embeddings&);

}  // namespace hctr
