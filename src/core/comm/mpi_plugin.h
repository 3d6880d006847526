// The interface of the MPI plug-in. Only plain types cross it.
//
// The plug-in (src/plugins/mpi) is a library of its own, loaded when a launcher of MPI has started the program: a host
// without MPI's library runs everything else.
#pragma once

#include <cstdint>

namespace hctr {

/// Functions that can fail return what went wrong, or null; the text lives until the next call. One thread at a time.
struct MpiPlugin {
  int64_t version;  ///< kMpiPlugin of the program that it was built with
  struct Place {
    int32_t process, count;          ///< which process this is, of how many
    int32_t of_host, count_on_host;  ///< the same among those of its host
  };
  /// Initializes MPI, unless another part of the process has done so. finish() finalizes it only then.
  const char* (*start)(Place*);
  void (*finish)();
  /// Collective. `of_each` [count][bytes]: what each process gives as `mine` [bytes].
  const char* (*gather)(const void* mine, int32_t bytes, void* of_each);
  /// Start a message. The data must stay until it is done.
  const char* (*send)(const void* data, int32_t bytes, int32_t to_process, int32_t tag);
  const char* (*receive)(void* data, int32_t bytes, int32_t from_process, int32_t tag);
  /// Moves messages on. `all`: whether all that were started are done; their list is then empty.
  const char* (*advance)(bool* all);
  /// Whether a message is done: they are counted from 0, in the order in which they were started.
  bool (*done)(int64_t message);
  /// Ends all processes.
  void (*abort)(int32_t exit_code);
};

inline constexpr int64_t kMpiPlugin = 2;
inline constexpr const char* kMpiPluginFile = "libhuge_ctr_mpi.so";
/// The plug-in's one symbol: const MpiPlugin* ().
inline constexpr const char* kMpiPluginEntry = "hctr_mpi_plugin";

}  // namespace hctr
