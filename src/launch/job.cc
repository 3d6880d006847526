#include "launch/job.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/current_error.h"
#include "core/base/platform.h"
#include "core/comm/collective_error.h"
#include "core/comm/host_comm.h"
#include "core/comm/nccl_comm.h"
#include "core/comm/self_comm.h"
#include "core/device/current_device.h"
#include "launch/gpu_setup.h"

namespace hctr {
namespace {

using std::chrono::seconds;

constexpr seconds kToEnd{5};  // time for the other ranks to end after a failure

}  // namespace

Job::Job(std::vector<Device> devices, Processes* others, seconds limit, Log log, std::string doing, Surroundings around)
    : devices_(std::move(devices)),
      others_(others),
      log_(std::move(log)),
      doing_(std::move(doing)),
      around_(std::move(around)),
      group_(static_cast<int>(devices_.size()), others, limit, around_.environment) {}

std::unique_ptr<Communicator> Job::communicator(int rank, Device device) {
  if (ranks() == 1) return std::make_unique<SelfComm>();
  if (!device.is_cuda()) return std::make_unique<HostComm>(group_, rank);
  if constexpr (kNcclBuild) {
    HostComm host(group_, rank);
    const std::string found = check_gpu_setup(host, device, around_.environment, log_);
    try {  // in_context() would need a lambda, which is compiled where there is no NCCL, too
      return make_nccl_comm(group_, rank, device);
    } catch (const Error& error) {
      throw error.with_context(found.empty() ? "connecting the GPUs"
                                             : cat("connecting the GPUs; possible causes in the set-up:\n", found));
    }
  }
  throw Error(Kind::device,
              "several GPUs need NCCL, which this build does not contain (-DHCTR_NCCL=ON says why not); name one GPU "
              "in \"gpu\"");
}

void Job::run_rank(int rank, Device device, const std::function<void(Communicator&, Device)>& body) {
  std::unique_ptr<Communicator> comm;
  const auto fail = [&](const Error& error) {
    const bool has_rank = dynamic_cast<const CollectiveError*>(&error) != nullptr;
    const Error named =
        ranks() > 1 && !has_rank ? error.with_context(cat(doing_, " on rank ", rank, " of ", ranks())) : error;
    group_.fail(rank, named);
    if (comm) comm->abort(named);
  };
  try {
    comm = communicator(rank, device);
    body(*comm, device);
  } catch (const CollectiveError& error) {
    fail(error);
  } catch (...) {
    fail(current_error());
  }
}

void Job::end_with(const Error& error) {
  if (around_.on_lost_peer) around_.on_lost_peer(error);
  if (others_) others_->abort(exit_code(error.kind()));
  if (around_.end_process) around_.end_process(exit_code(error.kind()));
}

void Job::run(const std::function<void(Communicator&, Device)>& body) {
  if (ranks_here() == 1) {
    const CurrentDevice current(devices_[0]);  // the thread is the caller's
    run_rank(first_rank(), devices_[0], body);
    if (const auto failure = group_.failure()) throw failure->error;
    return;
  }
  std::mutex mutex;
  std::condition_variable change;
  int ended = 0;
  std::vector<std::thread> threads;
  threads.reserve(devices_.size());
  bool refused = false;  // a rank that fails at once does not keep the others from starting
  for (int i = 0; i < ranks_here() && !refused; ++i) {
    const auto run_this = [&, i] {
      run_rank(first_rank() + i, devices_[static_cast<size_t>(i)], body);
      const std::lock_guard lock(mutex);
      ++ended;
      change.notify_one();
    };
    try {
      threads.emplace_back(run_this);
    } catch (...) {  // the ranks that have started learn of it, and their threads are joined
      refused = true;
      group_.fail(first_rank() + i,
                  current_error().with_context(cat("starting the thread of rank ", first_rank() + i)));
    }
  }
  {
    std::unique_lock lock(mutex);
    const auto all_ended = [&] { return ended == static_cast<int>(threads.size()); };
    change.wait(lock, [&] { return all_ended() || group_.failure(); });
    if (!all_ended() &&
        !change.wait_for(lock, kToEnd, all_ended)) {  // a rank that waits for a disk, for example, does not notice
      const Error error = group_.failure()->error;
      lock.unlock();
      end_with(error);
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (const auto failure = group_.failure()) throw failure->error;
}

void end_job(Processes& others, const Error& error, const Surroundings& around) {
  // Every process may meet the same error, such as a mistake in the config: process 0 says it first and ends the
  // others.
  if (around.end_process && others.process() > 0) std::this_thread::sleep_for(seconds(2));
  if (around.end_process && around.on_lost_peer) around.on_lost_peer(error);
  others.abort(exit_code(error.kind()));
  if (around.end_process) around.end_process(exit_code(error.kind()));
}

}  // namespace hctr
