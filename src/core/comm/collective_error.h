// Errors that every rank throws together.
#pragma once

#include <optional>

#include "core/base/current_error.h"
#include "core/comm/communicator.h"

namespace hctr {

/// Thrown by every rank from the same call of the same step. No rank is left waiting in a collective call, so the ranks
/// can still communicate.
class CollectiveError : public Error {
 public:
  explicit CollectiveError(const Error& error) : Error(error) {}
};

/// In a catch block: whether the other ranks have caught the same, or there are none.
bool thrown_on_all_ranks(const Communicator&);

/// Collective. If any rank passes an error, every rank throws a CollectiveError with the error of the lowest such rank
/// and that rank's number. A single rank rethrows its own error unchanged. `doing`: the ranks' work, for the message.
void throw_on_all_ranks(Communicator&, const std::optional<Error>& own, const char* doing = "training");

/// Collective. Runs `body`, which makes no collective calls, on this rank, and throws the error of any rank on all.
template <class Body>
void run_on_all_ranks(Communicator& comm, const Body& body, const char* doing = "training") {
  std::optional<Error> own;
  try {
    body();
  } catch (...) {
    own = current_error();
  }
  throw_on_all_ranks(comm, own, doing);
}

/// Runs body(). An error that this rank throws alone wakes the others before anything that they share is destroyed.
template <class Body>
auto or_abort(Communicator& comm, const Body& body) {
  try {
    return body();
  } catch (const CollectiveError&) {
    throw;
  } catch (...) {
    comm.abort(current_error());
    throw;
  }
}

}  // namespace hctr
