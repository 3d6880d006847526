// The interface of the MPI plug-in. Only plain types cross it.
//
// The plug-in (src/plugins/mpi) is a separate library, loaded if a launcher of MPI has started the program: everything
// else works on a host without MPI's library.
#pragma once

#include <cstdint>

namespace hctr {

/// Functions that can fail return an error text, or null; the text is valid until the next call. One thread at a time.
struct MpiPlugin {
  int64_t version;  ///< kMpiPlugin of the program that it was built with
  struct Place {
    int32_t process, count;          ///< number of this process, and of all
    int32_t of_host, count_on_host;  ///< the same within its host
  };
  /// Initializes MPI, unless another part of the process has done so. finish() finalizes it only then.
  const char* (*start)(Place*);
  void (*finish)();
  /// Collective. `of_each` [count][bytes]: the `mine` [bytes] of each process.
  const char* (*gather)(const void* mine, int32_t bytes, void* of_each);
  /// Start a message. The data must not change until it is done.
  const char* (*send)(const void* data, int32_t bytes, int32_t to_process, int32_t tag);
  const char* (*receive)(void* data, int32_t bytes, int32_t from_process, int32_t tag);
  /// Advances messages. `all`: whether all started messages are done; their list is then cleared.
  const char* (*advance)(bool* all);
  /// Whether a message is done; messages are numbered from 0, in the order in which they were started.
  bool (*done)(int64_t message);
  /// Ends all processes.
  void (*abort)(int32_t exit_code);
};

inline constexpr int64_t kMpiPlugin = 2;
inline constexpr const char* kMpiPluginFile = "libhuge_ctr_mpi.so";
/// The plug-in's one symbol: const MpiPlugin* ().
inline constexpr const char* kMpiPluginEntry = "hctr_mpi_plugin";

}  // namespace hctr
