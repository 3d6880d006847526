// Finds out that another process of the job is gone, whatever this process is doing.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/expect.h"
#include "core/comm/tcp_join.h"
#include "hctr/surroundings.h"

namespace hctr {

/// A thread that says every second over the control connections that this process lives, and hears the same of others:
/// process 0 of all, the others of process 0, which tells them who has failed.
class Watch {
 public:
  /// `control` and `hosts`: as JobConnections has them. `silence`: how long a process may be silent. Of the
  /// surroundings on_lost_peer() gets the failure() once, where this process has not ended 0.2 s later; end_process()
  /// is called 8 s later, and at once where another process tells this one to end.
  Watch(int process, std::vector<TcpSocket> control, std::vector<std::string> hosts, std::chrono::seconds silence,
        const Surroundings&);
  /// Says goodbye, and waits a moment for the others to do so.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// A descriptor that poll() finds readable once there is a failure().
  int descriptor() const { return wake_; }
  /// Error(comm) naming the process that is gone, or saying that one has told the others to end.
  std::optional<Error> failure() const;
  /// The same for whoever has lost a connection, and wants to say why: waits for at most 2 s.
  std::optional<Error> failure_soon() const;
  /// Tells all other processes to end at once with this exit code.
  void tell_to_end(int exit_code) noexcept;

 private:
  struct Peer {
    int process;
    TcpSocket socket;
    TcpClock::time_point heard;
    bool left = false;  // has said goodbye
  };
  void run();
  void read_from(Peer&);
  void has_left(Peer&);
  void fail(const Peer&, const std::string& why);
  void fail_with(const std::string& text);
  void say_failure();
  void end_if_possible(int exit_code);
  void send_to_all(const std::string& text, const Peer* except = nullptr);
  bool all_left() const;

  int process_;
  std::chrono::seconds silence_;
  std::vector<std::string> hosts_;
  std::function<void(const Error&)> on_lost_peer_;
  std::function<void(int exit_code)> end_process_;
  std::vector<Peer> peers_;
  int wake_;
  mutable std::mutex mutex_;
  std::mutex sending_;
  std::optional<Error> failure_;
  TcpClock::time_point failed_at_{};
  bool ending_ = false, said_ = false, ended_ = false;  // said_ and ended_ are the thread's
  int stop_;
  std::thread thread_;
};

}  // namespace hctr
