// Calls of several tables, whose kernels of one kind may start as one.
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
/// The same for several groups, one after the other.
void run_tables(const Embeddings&, const std::vector<TableGroup>&, Context, const char* part, const TableCall& body);

/// What a plan goes by. The same on every rank.
std::vector<TableFacts> table_facts(const Embeddings&);

}  // namespace hctr
