#include "core/comm/collective_error.h"

#include <algorithm>

#include "core/comm/join_text.h"

namespace hctr {

bool thrown_on_all_ranks(const Communicator& comm) {
  if (comm.size() == 1) return true;
  try {
    throw;
  } catch (const CollectiveError&) {
    return true;
  } catch (...) {
    return false;
  }
}

void throw_on_all_ranks(Communicator& comm, const std::optional<Error>& own, const char* doing) {
  if (comm.size() == 1 && own) throw *own;
  if (!comm.any(own.has_value())) return;
  const std::string own_text =
      own ? own->with_context(cat(doing, " on rank ", comm.rank(), " of ", comm.size())).what() : "";
  const auto texts = comm.gather(own_text, 0), kinds = comm.gather(own ? cat(static_cast<int>(own->kind())) : "", 0);
  const auto first = [](const std::vector<std::string>& all) {
    const auto found = std::find_if(all.begin(), all.end(), [](const std::string& one) { return !one.empty(); });
    return found == all.end() ? std::string() : *found;
  };
  const std::string text = comm.broadcast(first(texts), 0), kind = comm.broadcast(first(kinds), 0);
  const auto known = whole_number(kind, 0, static_cast<int>(Kind::interrupted));
  throw CollectiveError(Error(known ? static_cast<Kind>(*known) : Kind::comm, text));
}

}  // namespace hctr
