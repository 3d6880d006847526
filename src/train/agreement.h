// Errors that a rank foresees, so that all ranks stop at one place.
#pragma once

#include <optional>

#include "base/error.h"
#include "comm/communicator.h"

namespace hctr {

/// Thrown by every rank from the same call of the same step: nobody is left in a collective call, so ranks can still do
/// something together.
class AgreedError : public Error {
 public:
  explicit AgreedError(const Error& error) : Error(error) {}
};

/// Collective, in a step: when a rank has an error, all throw that of the first such rank, with the rank's number. A
/// rank that is alone throws its own.
void throw_together(Communicator&, const std::optional<Error>& mine);

}  // namespace hctr
