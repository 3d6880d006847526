// The MPI calls that the program needs, behind the plug-in's only exported symbol. The state is process-wide, because
// MPI is initialized once per process.
#include <mpi.h>

#include <string>
#include <vector>

#include "core/comm/mpi_plugin.h"

namespace {

MPI_Comm comm = MPI_COMM_NULL;
bool ours = false;                  // whether this plug-in initialized MPI, and so must finalize it
std::vector<MPI_Request> requests;  // requests of started messages
std::string problem;

const char* checked(int status, const char* call) {
  if (status == MPI_SUCCESS) return nullptr;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  problem = std::string(call) + ": " + text;
  return problem.c_str();
}

const char* start(hctr::MpiPlugin::Place* place) {
  if (comm != MPI_COMM_NULL) return "another job of this process uses MPI: expected one at a time";
  int level = 0, initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized) return "MPI was finalized in this process, and can be initialized only once";
  ours = !initialized;
  const char* failed =
      ours ? checked(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread")
           : checked(MPI_Query_thread(&level), "MPI_Query_thread");
  if (failed) return failed;
  if (level < MPI_THREAD_SERIALIZED) return "this MPI does not support programs with threads (MPI_THREAD_SERIALIZED)";
  if ((failed = checked(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup"))) return failed;
  if ((failed = checked(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"))) return failed;
  MPI_Comm_rank(comm, &place->process);
  MPI_Comm_size(comm, &place->count);
  MPI_Comm host = MPI_COMM_NULL;
  if ((failed = checked(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, place->process, MPI_INFO_NULL, &host),
                        "MPI_Comm_split_type")))
    return failed;
  MPI_Comm_rank(host, &place->of_host);
  MPI_Comm_size(host, &place->count_on_host);
  return checked(MPI_Comm_free(&host), "MPI_Comm_free");
}

void finish() {
  requests.clear();
  if (ours)
    MPI_Finalize();
  else if (comm != MPI_COMM_NULL)
    MPI_Comm_free(&comm);
  comm = MPI_COMM_NULL;
}

const char* gather(const void* mine, int32_t bytes, void* of_each) {
  return checked(MPI_Allgather(mine, bytes, MPI_BYTE, of_each, bytes, MPI_BYTE, comm), "MPI_Allgather");
}

const char* send(const void* data, int32_t bytes, int32_t to_process, int32_t tag) {
  requests.push_back(MPI_REQUEST_NULL);
  return checked(MPI_Isend(data, bytes, MPI_BYTE, to_process, tag, comm, &requests.back()), "MPI_Isend");
}

const char* receive(void* data, int32_t bytes, int32_t from_process, int32_t tag) {
  requests.push_back(MPI_REQUEST_NULL);
  return checked(MPI_Irecv(data, bytes, MPI_BYTE, from_process, tag, comm, &requests.back()), "MPI_Irecv");
}

const char* advance(bool* all) {
  int done = 0;
  const char* failed = checked(
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  *all = done != 0;
  if (*all) requests.clear();
  return failed;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const hctr::MpiPlugin* hctr_mpi_plugin() {
  static const hctr::MpiPlugin plugin = {
      .version = hctr::kMpiPlugin,
      .start = start,
      .finish = finish,
      .gather = gather,
      .send = send,
      .receive = receive,
      .advance = advance,
      .done = [](int64_t message) { return requests[static_cast<size_t>(message)] == MPI_REQUEST_NULL; },
      .abort = [](int32_t exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); },
  };
  return &plugin;
}
