#include "core/comm/rank_group.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "core/base/current_error.h"
#include "core/base/host_name.h"
#include "core/base/short_waits.h"
#include "core/base/stopped_time.h"
#include "core/comm/rank_list.h"

namespace hctr {
namespace {

using BarrierClock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kBarrierYielding{20};
// if other threads compete for cores, waiting ranks sleep instead of yielding in this number of barriers
constexpr uint64_t kMeetingsAsleep = 1000;

}  // namespace

RankGroup::RankGroup(int ranks, Processes* others, std::chrono::seconds limit, Environment environment)
    : others_(others),
      limit_(limit),
      environment_(std::move(environment)),
      local_ranks_(others ? others->join(ranks) : LocalRanks{0, ranks, ranks}),
      hosts_(find_hosts()),
      here_(static_cast<size_t>(ranks), 0),
      transfers_(static_cast<size_t>(ranks), nullptr) {}

std::vector<int> RankGroup::find_hosts() {
  const auto total = static_cast<size_t>(local_ranks_.total);
  std::vector<int> hosts(total, 0);
  if (!others_) return hosts;
  using Name = std::array<char, 256>;
  Name mine{};
  host_id(environment_).copy(mine.data(), mine.size() - 1);
  // In an exchange each local rank receives from all ranks, so `received` has a list of names for each local rank.
  const auto local = static_cast<size_t>(local_ranks_.count);
  std::vector<std::vector<Name>> received(local, std::vector<Name>(total, mine));
  std::vector<Transfer> transfers(local);
  std::vector<const Transfer*> all;
  for (size_t here = 0; here < local; ++here) {
    for (Name& name : received[here]) {
      transfers[here].send.push_back({reinterpret_cast<std::byte*>(mine.data()), mine.size()});
      transfers[here].receive.push_back({reinterpret_cast<std::byte*>(name.data()), name.size()});
    }
    all.push_back(&transfers[here]);
  }
  others_->exchange(all, Wait::unlimited);
  const std::vector<Name>& names = received[0];
  for (size_t r = 1; r < total; ++r) {
    const auto same = std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(r), names[r]);
    const auto first = static_cast<size_t>(same - names.begin());
    hosts[r] =
        first < r ? hosts[first] : *std::max_element(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(r)) + 1;
  }
  return hosts;
}

template <class Over>
void RankGroup::yield_for(const Over& over) {
  const uint64_t meeting = meetings_;
  if (meeting >= sleeping_until_ && !yield_until(kBarrierYielding, over)) sleeping_until_ = meeting + kMeetingsAsleep;
}

void RankGroup::exchange(int rank, const Transfer& transfer, Wait wait, const char* name) {
  transfers_[static_cast<size_t>(rank - local_ranks_.first)] = &transfer;
  meet(rank, wait, name, [&] {
    if (others_) others_->exchange(transfers_, wait);
    copying_ = local_ranks_.count;
  });
  try {
    copy_to(rank, transfer, name);
  } catch (...) {
    fail(rank, current_error());
    leave_copying();
    throw;
  }
  leave_copying();
}

void RankGroup::copy_to(int rank, const Transfer& transfer, const char* name) const {
  for (int peer = 0; peer < local_ranks_.count; ++peer) {
    const Transfer::Piece& from = transfers_[static_cast<size_t>(peer)]->send[static_cast<size_t>(rank)];
    const Transfer::Piece& to = transfer.receive[static_cast<size_t>(local_ranks_.first + peer)];
    HCTR_EXPECT(from.bytes == to.bytes, name, ": rank ", local_ranks_.first + peer, " sends ", from.bytes,
                " bytes and rank ", rank, " expects ", to.bytes);
    if (to.bytes > 0) std::memcpy(to.data, from.data, to.bytes);
  }
}

void RankGroup::leave_copying() {
  std::unique_lock lock(mutex_);
  const uint64_t copied = copied_;
  if (--copying_ == 0) {
    ++copied_;
    change_.notify_all();
    return;
  }
  const auto over = [&] { return copied_ != copied; };
  lock.unlock();
  yield_for(over);
  lock.lock();
  change_.wait(lock, over);
}

void RankGroup::meet(int rank, Wait wait, const char* name, const std::function<void()>& last) {
  std::unique_lock lock(mutex_);
  throw_failure(rank);
  here_[static_cast<size_t>(rank - local_ranks_.first)] = 1;
  if (++arrived_ == local_ranks_.count) {
    exchanging_ = true;
    lock.unlock();
    try {
      last();
    } catch (...) {
      const Error error = current_error().with_context(name);
      lock.lock();
      exchanging_ = false;
      lock.unlock();
      fail(rank, error);
      throw error;
    }
    lock.lock();
    exchanging_ = false;
    arrived_ = 0;
    here_.assign(here_.size(), 0);
    ++meetings_;
    change_.notify_all();
    return;
  }
  const uint64_t meeting = meetings_;
  // The exchanging rank reads data of the waiting ranks, so a waiting rank must not leave before the exchange ends.
  const auto met = [&] { return meetings_ != meeting; };
  const auto over = [&] { return met() || (failed_ && !exchanging_); };
  lock.unlock();
  yield_for(over);
  lock.lock();
  BarrierClock::time_point end = BarrierClock::now() + limit_;
  StoppedTime stopped;
  while (!over()) {
    if (wait == Wait::unlimited || limit_.count() == 0) {
      change_.wait(lock, over);
      continue;
    }
    change_.wait_for(lock, std::chrono::seconds(1), over);
    end += stopped.since_last();
    // If all ranks have arrived, the last rank is exchanging with other processes. That exchange has its own time
    // limit, so the limit here applies only while a rank is missing.
    if (!over() && BarrierClock::now() >= end && arrived_ < local_ranks_.count) {
      const Error late(Kind::comm,
                       cat(missing_ranks(), " not reached ", name, " within ", limit_.count(), " s, where rank ", rank,
                           " waits: a rank or its disk hangs; ", limit_setting_, " sets a longer limit"));
      lock.unlock();
      fail(rank, late);
      throw late;
    }
  }
  if (!met()) throw_failure(rank);  // if the barrier is complete, go on; the rank's next barrier throws
}

std::string RankGroup::missing_ranks() const {
  std::set<int> missing;
  for (size_t r = 0; r < here_.size(); ++r)
    if (!here_[r]) missing.insert(local_ranks_.first + static_cast<int>(r));
  return cat(rank_list(missing), missing.size() == 1 ? " has" : " have");
}

void RankGroup::throw_failure(int rank) const {
  if (!failure_) return;
  if (failure_->rank == rank && !failure_->reason_follows) throw failure_->error;
  throw Error(Kind::comm, cat("rank ", failure_->rank, " failed: ", failure_->error.what()));
}

void RankGroup::fail(int rank, const Error& error) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_ || failure_->rank == rank) failure_ = Failure{rank, error};
    failed_ = true;
  }
  change_.notify_all();
}

void RankGroup::leave(int rank) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = Failure{rank, Error(Kind::device, "it has ended"), true};
    failed_ = true;
  }
  change_.notify_all();
}

std::optional<RankGroup::Failure> RankGroup::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace hctr
