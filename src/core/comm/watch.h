// Detects the loss of another process of the job, whatever this process is doing.
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

/// A thread that sends a heartbeat every second over the control connections and expects those of others: process 0 of
/// all processes, the others of process 0, which notifies them of failures.
class Watch {
 public:
  /// `control` and `hosts`: see JobConnections. `silence`: maximum time between heartbeats. on_lost_peer() of the
  /// surroundings is called once with the failure(), if this process has not ended 0.2 s later; end_process() is called
  /// 8 s later, and at once if another process ends this one.
  Watch(int process, std::vector<TcpSocket> control, std::vector<std::string> hosts, std::chrono::seconds silence,
        const Surroundings&);
  /// Sends a goodbye, and waits a moment for those of the others.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// A descriptor that poll() reports readable once there is a failure().
  int descriptor() const { return wake_; }
  /// Error(comm) naming the lost process, or the one that has ended the others.
  std::optional<Error> failure() const;
  /// The same for a thread that has lost a connection and needs the reason: waits at most 2 s.
  std::optional<Error> failure_soon() const;
  /// Ends all other processes at once with this exit code.
  void tell_to_end(int exit_code) noexcept;

 private:
  struct Peer {
    int process;
    TcpSocket socket;
    TcpClock::time_point heard;
    bool left = false;  // has sent its goodbye
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
  bool ending_ = false, said_ = false, ended_ = false;  // said_ and ended_ belong to the thread
  int stop_;
  std::thread thread_;
};

}  // namespace hctr
