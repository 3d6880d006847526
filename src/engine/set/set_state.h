// The files of an EmbeddingSet: a checkpoint of its tables.
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

/// A table as one rank has it.
struct TableOnRank {
  EmbeddingTable* table = nullptr;  ///< null: it has no row here
  TablePlace place{};
};

/// Errors: Error(usage), on every rank, if the tables, features, seed or batches differ between ranks.
void expect_alike_on_all_ranks(Communicator&, const EmbeddingOptions&);

// `comm`: null on one rank; collective on several.
/// Errors: Error(io), also if the folder exists and is not a saved set.
void save_set(const std::filesystem::path& folder, const EmbeddingOptions&, Runtime&, const std::vector<TableOnRank>&,
              Communicator* comm, const SetProgress&);
/// Errors: Error(io); Error(data) naming the table and what differs, or the damaged file.
SetProgress load_set(const std::filesystem::path& folder, const EmbeddingOptions&, Runtime&,
                     const std::vector<TableOnRank>&, Communicator* comm);

}  // namespace hctr
