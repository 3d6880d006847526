// The files of an EmbeddingSet: a checkpoint of its tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/table/table.h"
#include "hctr/embedding.h"

namespace hctr {

struct SetProgress {
  int64_t updates = 0, steps = 0;
};

/// Errors: Error(io), also where the folder exists and is none of these.
void save_set(const std::filesystem::path& folder, const EmbeddingOptions&, Runtime&,
              const std::vector<EmbeddingTable*>&, const SetProgress&);
/// Errors: Error(io); Error(data) naming the table and what differs, or the damaged file.
SetProgress load_set(const std::filesystem::path& folder, const EmbeddingOptions&, Runtime&,
                     const std::vector<EmbeddingTable*>&);

}  // namespace hctr
