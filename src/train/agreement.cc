#include "train/agreement.h"

#include <algorithm>

namespace hctr {

void throw_together(Communicator& comm, const std::optional<Error>& mine) {
  if (comm.size() == 1 && mine) throw *mine;
  if (!comm.any(mine.has_value())) return;
  const std::string own =
      mine ? mine->with_context(cat("training on rank ", comm.rank(), " of ", comm.size())).what() : "";
  const auto texts = comm.gather(own, 0), kinds = comm.gather(mine ? cat(static_cast<int>(mine->kind())) : "", 0);
  const auto first = [](const std::vector<std::string>& all) {
    const auto found = std::find_if(all.begin(), all.end(), [](const std::string& one) { return !one.empty(); });
    return found == all.end() ? std::string() : *found;
  };
  const std::string text = comm.broadcast(first(texts), 0), kind = comm.broadcast(first(kinds), 0);
  throw AgreedError(Error(static_cast<Kind>(std::stoi(kind)), text));
}

}  // namespace hctr
