// The ranks of each host. For each owner on another host, one rank of a host gathers the keys that its host requests
// from that owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/comm/communicator.h"

namespace hctr {

class HostGroups {
 public:
  explicit HostGroups(const Communicator& comm)
      : host_(comm.host_of(comm.rank())), owners_through_(static_cast<size_t>(comm.size())) {
    for (int r = 0; r < comm.size(); ++r) {
      const auto host = static_cast<size_t>(comm.host_of(r));
      if (hosts_.size() <= host) hosts_.resize(host + 1);
      hosts_[host].push_back(r);
    }
    for (const int rank : here()) owners_through_[static_cast<size_t>(rank)].push_back(rank);
    for (int owner = 0; owner < comm.size(); ++owner)
      if (comm.host_of(owner) != host_)
        owners_through_[static_cast<size_t>(gathering_rank(static_cast<size_t>(host_), owner))].push_back(owner);
  }

  int host() const { return host_; }  ///< index of this rank's host
  const std::vector<std::vector<int>>& hosts() const { return hosts_; }
  const std::vector<int>& here() const { return hosts_[static_cast<size_t>(host_)]; }
  /// The index of `rank`, which must be on this host, among the ranks of this host.
  int64_t index_here(int rank) const { return std::find(here().begin(), here().end(), rank) - here().begin(); }
  /// The rank of `host` that gathers the host's keys for an owner on another host. Owners are distributed over the
  /// ranks of the host, so that no single rank carries the traffic of the whole host.
  int gathering_rank(size_t host, int owner) const {
    const std::vector<int>& ranks = hosts_[host];
    return ranks[static_cast<size_t>(owner) % ranks.size()];
  }
  /// The owners for which `rank` receives keys from the other ranks of this host. The first owner is `rank` itself. The
  /// others are those for which `rank` is the gathering rank. Empty for ranks of other hosts.
  const std::vector<int>& owners_through(int rank) const { return owners_through_[static_cast<size_t>(rank)]; }
  /// All owners, ordered so that messages through the same gathering rank are contiguous.
  std::vector<int> owner_order() const {
    std::vector<int> order;
    for (const std::vector<int>& owners : owners_through_) order.insert(order.end(), owners.begin(), owners.end());
    return order;
  }

 private:
  int host_;
  std::vector<std::vector<int>> hosts_;
  std::vector<std::vector<int>> owners_through_;  // [rank]
};

}  // namespace hctr
