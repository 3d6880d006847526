// Errors that all ranks throw together.
#pragma once

#include <optional>

#include "core/base/current_error.h"
#include "core/comm/communicator.h"

namespace hctr {

/// Thrown by every rank from the same call of the same step. No rank is left blocked in a collective call, so the ranks
/// can still communicate.
class CollectiveError : public Error {
 public:
  explicit CollectiveError(const Error& error) : Error(error) {}
};

/// Returns whether all ranks caught the same exception; true for a single rank. Call this inside a catch block.
bool thrown_on_all_ranks(const Communicator&);

/// Collective. If any rank passes an error, every rank throws a CollectiveError. The CollectiveError contains the error
/// and the number of the lowest failing rank. A single rank rethrows its own error unchanged. `doing`: what the ranks
/// do, for the message.
void throw_on_all_ranks(Communicator&, const std::optional<Error>& own, const char* doing = "training");

/// Collective. Runs `body` on each rank; `body` must not make collective calls. If any rank fails, every rank throws.
template <class Body>
void run_on_all_ranks(Communicator& comm, const Body& body, const char* doing = "training") {
  throw_on_all_ranks(comm, error_of(body), doing);
}

/// Runs body(), and returns its result. An exception that is no CollectiveError was thrown by this rank alone: calls
/// end_others(error), then rethrows the exception.
template <class EndOthers, class Body>
auto or_end_others(const EndOthers& end_others, const Body& body) {
  try {
    return body();
  } catch (const CollectiveError&) {
    throw;
  } catch (...) {
    end_others(current_error());
    throw;
  }
}

/// Calls or_end_others() with comm.abort(), which wakes the other ranks before this rank destroys shared objects.
template <class Body>
auto or_abort(Communicator& comm, const Body& body) {
  return or_end_others([&](const Error& error) { comm.abort(error); }, body);
}

}  // namespace hctr
