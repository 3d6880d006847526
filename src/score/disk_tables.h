// Which tables of a model may have rows on a disk.
#pragma once

#include <set>
#include <string>

#include "net/model/replica.h"

namespace hctr {

/// The folders for their rows. If there are any, hosts look keys up too, outside the recording.
inline std::set<std::string> disk_folders(Runtime& runtime, const Replica& model) {
  std::set<std::string> folders;
  for (size_t e = 0; e < model.embeddings(); ++e) {
    const RowMemory& budget = budget_of(runtime, model.table_spec(e));
    if (budget.has_disk()) folders.insert(budget.limits().disk_folder);
  }
  return folders;
}

}  // namespace hctr
