// Saves and loads the files of an EmbeddingSet: a checkpoint of its tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/comm/communicator.h"
#include "engine/set/set_placement.h"
#include "engine/table/table.h"
#include "hctr/embedding.h"

namespace hctr {

struct SetProgress {
  int64_t updates = 0, steps = 0;
};

/// A table on one rank.
struct TableOnRank {
  EmbeddingTable* table = nullptr;  ///< null: this rank has no row of the table
  TablePlace place{};
};

/// Errors: Error(usage) on every rank if the tables, features, seed or batches differ between ranks.
void expect_alike_on_all_ranks(Communicator&, const EmbeddingOptions&);

// `comm`: null on a single rank. Collective on several ranks.

/// Errors: Error(io), also if the folder exists and is not a saved set.
void save_set(const std::filesystem::path& folder, const EmbeddingOptions&, Runtime&, const std::vector<TableOnRank>&,
              Communicator* comm, const SetProgress&);
/// Errors: Error(io); Error(data) naming the table and the difference, or the damaged file.
SetProgress load_set(const std::filesystem::path& folder, const EmbeddingOptions&, Runtime&,
                     const std::vector<TableOnRank>&, Communicator* comm);

}  // namespace hctr
