#include "launch/job.h"

#include <utility>

#include "core/base/current_error.h"
#include "core/base/environment.h"
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
      group_(static_cast<int>(devices_.size()), others, limit, around_.environment),
      communicators_(devices_.size()) {
  // With the value 0, NCCL uses the buffers of other ranks of this process directly. With other values, NCCL maps the
  // buffers a second time, and freeing both mappings at the same time can end the process (see nccl_comm.cu).
  constexpr const char* kMappings = "NCCL_CUMEM_ENABLE";
  if (ranks_here() > 1 && devices_[0].is_cuda() && around_.set_environment &&
      !variable_of(around_.environment, kMappings))
    around_.set_environment(kMappings, "0");
}

Job::~Job() {
  if (ranks_here() == 1) {
    const CurrentDevice current(devices_[0]);  // this is the caller's thread, so restore its current device afterwards
    communicators_.clear();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = nullptr;
    ++round_;
  }
  change_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::unique_ptr<Communicator> Job::make_communicator(int rank, Device device) {
  if (ranks() == 1) return std::make_unique<SelfComm>();
  if (!device.is_cuda()) return std::make_unique<HostComm>(group_, rank);
  if constexpr (kNcclBuild) {
    HostComm host(group_, rank);
    const std::string found = check_gpu_setup(host, device, around_.environment, log_);
    try {  // no in_context(): its lambda would be compiled even without NCCL
      return make_nccl_comm(group_, rank, device);
    } catch (const Error& error) {
      throw error.with_context(found.empty() ? "connecting the GPUs"
                                             : cat("connecting the GPUs; problems of the set-up that may be the "
                                                   "cause:\n",
                                                   found));
    }
  }
  throw Error(Kind::device,
              "several GPUs need NCCL, which this build does not contain (configure with -DHCTR_NCCL=ON to see why); "
              "name one GPU in \"gpu\"");
}

Communicator& Job::communicator(int rank, Device device) {
  std::unique_ptr<Communicator>& own = communicators_[static_cast<size_t>(rank - first_rank())];
  if (!own) own = make_communicator(rank, device);
  return *own;
}

void Job::run_rank(int local_rank, const Body& body) {
  const int rank = first_rank() + local_rank;
  const Device device = devices_[static_cast<size_t>(local_rank)];
  Communicator* comm = nullptr;
  const auto fail = [&](const Error& error) {
    const bool has_rank = dynamic_cast<const CollectiveError*>(&error) != nullptr;
    const Error named =
        ranks() > 1 && !has_rank ? error.with_context(cat(doing_, " on rank ", rank, " of ", ranks())) : error;
    group_.fail(rank, named);
    if (comm) comm->abort(named);
  };
  try {
    comm = &communicator(rank, device);
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

void Job::run(const Body& body) {
  if (const auto failure = group_.failure()) throw failure->error;
  if (ranks_here() == 1) {
    const CurrentDevice current(devices_[0]);  // this is the caller's thread, so restore its current device afterwards
    run_rank(0, body);
  } else {
    start_threads();
    in_threads([&](int local_rank) { run_rank(local_rank, body); }, true);
  }
  if (const auto failure = group_.failure()) throw failure->error;
}

void Job::clean_up(const Body& body) noexcept {
  const auto of_rank = [&](int local_rank) {
    try {
      if (Communicator* own = communicators_[static_cast<size_t>(local_rank)].get())
        body(*own, devices_[static_cast<size_t>(local_rank)]);
    } catch (const std::exception&) {
    }
  };
  if (ranks_here() == 1) {
    const CurrentDevice current(devices_[0]);
    of_rank(0);
  } else if (!threads_.empty()) {
    in_threads(of_rank, false);
  }
}

void Job::start_threads() {
  if (!threads_.empty()) return;
  threads_.reserve(devices_.size());
  for (int i = 0; i < ranks_here(); ++i) try {
      threads_.emplace_back([this, i] { work(i); });
    } catch (...) {
      group_.fail(first_rank() + i,
                  current_error().with_context(cat("starting the thread of rank ", first_rank() + i)));
      throw group_.failure()->error;
    }
}

void Job::work(int local_rank) {
  for (uint64_t done = 0;; ++done) {
    const std::function<void(int)>* body = nullptr;
    {
      std::unique_lock lock(mutex_);
      change_.wait(lock, [&] { return round_ != done; });
      body = work_;
    }
    if (!body) break;
    (*body)(local_rank);
    const std::lock_guard lock(mutex_);
    ++ended_;
    change_.notify_all();
  }
  communicators_[static_cast<size_t>(local_rank)].reset();
}

void Job::in_threads(const std::function<void(int)>& body, bool ends) {
  std::unique_lock lock(mutex_);
  work_ = &body;
  ended_ = 0;
  ++round_;
  change_.notify_all();
  const auto all_ended = [&] { return ended_ == static_cast<int>(threads_.size()); };
  bool told = !ends;
  while (!all_ended()) {
    if (for_caller_) {
      lock.unlock();
      (*for_caller_)();
      lock.lock();
      for_caller_ = nullptr;
      change_.notify_all();
    } else if (told || !group_.failure()) {
      // A failure itself does not notify `change_`; the failed rank notifies it when it returns.
      change_.wait(lock, [&] { return all_ended() || for_caller_ || (!told && group_.failure()); });
    } else if (!change_.wait_for(lock, kToEnd, [&] { return all_ended() || for_caller_; })) {
      // A rank has not returned within kToEnd after the failure. Perhaps it waits for a disk and cannot notice the
      // failure.
      told = true;
      const Error error = group_.failure()->error;
      lock.unlock();
      end_with(error);
      lock.lock();
    }
  }
}

void Job::in_callers_thread(const std::function<void()>& body) {
  if (ranks_here() == 1) return body();
  std::unique_lock lock(mutex_);
  for_caller_ = &body;
  change_.notify_all();
  change_.wait(lock, [&] { return for_caller_ != &body; });
}

void end_job(Processes& others, const Error& error, const Surroundings& around) {
  // All processes may have the same error, such as a mistake in the config. Only process 0 should report it, so the
  // other processes wait two seconds, in which process 0 ends them.
  if (around.end_process && others.process() > 0) std::this_thread::sleep_for(seconds(2));
  if (around.end_process && around.on_lost_peer) around.on_lost_peer(error);
  others.abort(exit_code(error.kind()));
  if (around.end_process) around.end_process(exit_code(error.kind()));
}

}  // namespace hctr
