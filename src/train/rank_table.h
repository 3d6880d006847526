// Who trains together, said at the start: hosts, devices, drivers, and what joins them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "hctr/surroundings.h"
#include "launch/choose_device.h"

namespace hctr {

/// What one rank says of itself.
struct RankAbout {
  std::string host;  ///< the name of the machine
  int process = 0;
  std::string device;                                      ///< its description
  std::string driver, version;                             ///< of the GPU, empty on a CPU; of this program
  std::string gpu_id;                                      ///< as gpu_links() has it; empty on a CPU
  std::vector<std::string> nvlink = {}, unreachable = {};  ///< GPUs of its host
  int64_t clock_ms = 0;                                    ///< since 1970
  std::string host_id = {};                                ///< NCCL_HOSTID; empty: not set

  /// What tells hosts apart, as for Communicator::host_of.
  const std::string& host_key() const { return host_id.empty() ? host : host_id; }
  /// "name", or "name (NCCL_HOSTID)".
  std::string host_label() const;
};

/// What a rank sends to rank 0, and back. A rank of another version may say less: those fields are empty, and
/// expect_one_program() names it.
std::string about_to_text(const RankAbout&);
RankAbout about_from_text(const std::string&);

/// How fast a host sends to that of rank 0, over what joins processes.
struct HostLink {
  double bytes_a_second = 0, seconds = 0;  ///< seconds: of a message without data
};

/// A line for all ranks of a host with one kind of device. `ranks`: by rank. `links`: by host in the order of their
/// first ranks, nothing where it was not measured.
std::string rank_table(const std::vector<RankAbout>& ranks, const std::vector<std::optional<HostLink>>& links);

/// Errors: Error(comm) naming the host whose program is not that of rank 0.
void expect_one_program(const std::vector<RankAbout>& ranks);
/// A sentence for each host whose clock is more than 5 s off that of rank 0.
std::vector<std::string> wrong_clocks(const std::vector<RankAbout>& ranks);

/// Collective. Rank 0 logs the table, after measuring how fast other hosts send to its own, and warns of clocks.
/// `process`: of this rank. Nothing happens on the CPU ranks of a single process, of `processes`. Errors: those of
/// expect_one_program(), on all ranks.
void show_ranks(Communicator&, Device, const ProcessPlace&, const Environment&, const Log&);

}  // namespace hctr
