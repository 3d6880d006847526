// The program's exception type, and the kinds of errors.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "hctr/export.h"

namespace hctr {

/// The kind of an error. Each kind has a process exit code.
enum class Kind {
  usage,        ///< wrong command line or arguments
  config,       ///< wrong JSON config
  data,         ///< wrong content of a data or model file
  io,           ///< a file cannot be opened, read or written
  device,       ///< a GPU or its driver failed; the system refused memory or threads
  comm,         ///< another rank or process failed
  bug,          ///< a contract between functions of this program was broken
  interrupted,  ///< the user stopped the program
};

/// The kind's name in messages: "config", "data", ....
HCTR_API std::string_view kind_name(Kind);

/// The process exit code of a kind: usage 2, config 3, data 4, io 5, device 6, comm 7, bug 1, interrupted 130.
HCTR_API int exit_code(Kind);

/// An error with a message for the user. Callers append context, one line per level.
class HCTR_API Error : public std::runtime_error {
 public:
  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }
  /// Returns this error with the line "  while <what>" appended.
  Error with_context(std::string_view what) const;

 private:
  Kind kind_;
};

}  // namespace hctr
