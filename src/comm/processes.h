// The processes of a job, as one of them sees the others. MPI joins them; its types do not leave this room.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace hctr {

/// What one rank sends to and receives from each rank of the job, itself included.
struct Transfer {
  struct Piece {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  std::vector<Piece> send, receive;
};

/// How long to wait for a rank that does not come.
enum class Wait {
  limited,   ///< in a step, where ranks are close together: longer than the limit means that it hangs
  patiently  ///< where one may write a file while others wait
};

/// Which ranks of the job this process hosts: [first, first + count) of `all`.
struct Seats {
  int first = 0, count = 1, all = 1;
};

class Processes {
 public:
  virtual ~Processes() = default;
  virtual int process() const = 0;
  virtual int count() const = 0;
  /// Each process says how many ranks it hosts.
  virtual Seats join(int ranks) = 0;
  /// Moves everything that goes from a rank here to a rank elsewhere, or comes from there. `transfers`: one for each
  /// rank here. One thread at a time. Errors: Error(comm) naming the ranks that did not answer in time.
  virtual void exchange(const std::vector<const Transfer*>& transfers, Wait) = 0;
  /// Ends all processes at once.
  [[noreturn]] virtual void abort(int exit_code) noexcept = 0;
};

/// The processes that mpirun, or another starter, started together with this one; none when it runs alone. `limit`: of
/// waiting; 0 is none. Errors: Error(usage) when there are several and this build contains no MPI; Error(comm).
std::unique_ptr<Processes> started_processes(std::chrono::seconds limit);

}  // namespace hctr
