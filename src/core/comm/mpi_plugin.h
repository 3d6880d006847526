// The interface of the MPI plug-in. Only plain C types cross the interface.
//
// The plug-in (src/plugins/mpi) is a separate library that is loaded only if an MPI launcher started the program. All
// other features work on a host without an MPI library.
#pragma once

#include <cstdint>

namespace hctr {

/// Functions that can fail return an error text, or null for success. The text is valid until the next call. Only one
/// thread may call at a time.
struct MpiPlugin {
  int64_t version;  ///< value of kMpiPlugin when the plug-in was built
  struct Place {
    int32_t process, count;          ///< this process's number, and the number of processes
    int32_t of_host, count_on_host;  ///< this process's number on its host, and the number of processes on this host
  };
  /// Initializes MPI unless another part of the process has done so. finish() finalizes MPI only if start() initialized
  /// MPI.
  const char* (*start)(Place*);
  void (*finish)();
  /// Collective all-gather. Stores the `mine` [bytes] of each process in `of_each` [count][bytes].
  const char* (*gather)(const void* mine, int32_t bytes, void* of_each);
  /// send() and receive() start a nonblocking message. `data` must stay valid and unchanged until the message is done.
  const char* (*send)(const void* data, int32_t bytes, int32_t to_process, int32_t tag);
  const char* (*receive)(void* data, int32_t bytes, int32_t from_process, int32_t tag);
  /// Makes progress on all started messages. Sets `all` if all of them are done, and then clears the list of messages.
  const char* (*advance)(bool* all);
  /// Whether a message is done. Messages are numbered from 0 in the order of their start.
  bool (*done)(int64_t message);
  /// Ends all processes.
  void (*abort)(int32_t exit_code);
};

inline constexpr int64_t kMpiPlugin = 2;
inline constexpr const char* kMpiPluginFile = "libhuge_ctr_mpi.so";
/// The plug-in's only exported symbol, of type const MpiPlugin* ().
inline constexpr const char* kMpiPluginEntry = "hctr_mpi_plugin";

}  // namespace hctr
