// Detects the loss of another process of the job, even while this process is blocked.
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

/// A watchdog thread. Sends a heartbeat over each control connection every second and expects the peers' heartbeats.
/// Process 0 watches all processes; other processes watch only process 0. Process 0 notifies the other processes of
/// failures.
class Watch {
 public:
  /// `control` and `hosts`: see JobConnections. `silence`: maximum time between heartbeats. After a failure, calls
  /// on_lost_peer() of the `Surroundings` once with failure(), unless this process ends within 0.2 s. Calls
  /// end_process() 8 s after the failure, or immediately if another process tells this process to end.
  Watch(int process, std::vector<TcpSocket> control, std::vector<std::string> hosts, std::chrono::seconds silence,
        const Surroundings&);
  /// Sends a goodbye to the peers, and waits up to 5 s for their goodbyes.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// A descriptor for poll(); readable once failure() is set.
  int descriptor() const { return wake_; }
  /// An Error(comm) that names the lost process, or the process that ended all other processes. nullopt before a
  /// failure.
  std::optional<Error> failure() const;
  /// Like failure(), but waits up to 2 s. For a thread that lost a connection and needs the reason.
  std::optional<Error> failure_soon() const;
  /// Ends all other processes immediately with this exit code.
  void tell_to_end(int exit_code) noexcept;

 private:
  struct Peer {
    int process;
    TcpSocket socket;
    TcpClock::time_point heard;
    bool left = false;  // whether the peer has sent its goodbye or closed the connection
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
  bool ending_ = false, said_ = false, ended_ = false;  // only thread_ uses said_ and ended_
  int stop_;
  std::thread thread_;
};

}  // namespace hctr
