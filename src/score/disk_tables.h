// Finds the tables of a model that may have rows on disk.
#pragma once

#include <set>
#include <string>

#include "net/model/replica.h"

namespace hctr {

/// The disk folders of all tables. If there are any, the host takes part in lookups, so forward passes cannot be
/// recorded as CUDA graphs.
inline std::set<std::string> disk_folders(Runtime& runtime, const Replica& model) {
  std::set<std::string> folders;
  for (size_t e = 0; e < model.embeddings(); ++e) {
    const RowMemory& budget = budget_of(runtime, model.table_spec(e));
    if (budget.has_disk()) folders.insert(budget.limits().disk_folder);
  }
  return folders;
}

}  // namespace hctr
