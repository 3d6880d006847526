// Calls of several tables. Kernels of the same kind may be merged into one launch.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/exchange/rank_embedding.h"
#include "net/plan/step_plan.h"

namespace hctr {

using Embeddings = std::vector<std::unique_ptr<Embedding>>;
using TableCall = std::function<void(Context&, size_t table)>;

/// Runs body(context, e) for every table e of the group. `part`: the part's name in profiles.
void run_tables(const Embeddings&, const TableGroup&, Context, const char* part, const TableCall& body);
/// Runs several groups sequentially.
void run_tables(const Embeddings&, const std::vector<TableGroup>&, Context, const char* part, const TableCall& body);

/// The facts of tables that a step plan depends on. Equal on every rank.
std::vector<TableFacts> table_facts(const Embeddings&);

}  // namespace hctr
