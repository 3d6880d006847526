// Logs at the start which hosts, devices and drivers take part, and the links between them.
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

/// The description that one rank sends of itself.
struct RankAbout {
  std::string host;  ///< name of the machine
  int process = 0;
  std::string device;  ///< its description
  /// version of the GPU driver, empty on a CPU; version of this program
  std::string driver, version;
  std::string gpu_id;                                      ///< from gpu_links(); empty on a CPU
  std::vector<std::string> nvlink = {}, unreachable = {};  ///< GPUs of its host
  int64_t clock_ms = 0;                                    ///< since 1970
  std::string host_id = {};                                ///< NCCL_HOSTID; empty: not set

  /// The key that distinguishes hosts, as for Communicator::host_of.
  const std::string& host_key() const { return host_id.empty() ? host : host_id; }
  /// "name", or "name (NCCL_HOSTID)".
  std::string host_label() const;
};

/// Converts to and from the text that a rank sends to rank 0. A rank of another version may send fewer fields: those
/// are empty, and expect_one_program() names it.
std::string about_to_text(const RankAbout&);
RankAbout about_from_text(const std::string&);

/// The rate from a host to rank 0's host, over the transport between processes.
struct HostLink {
  double bytes_a_second = 0, seconds = 0;  ///< seconds: of an empty message
};

/// A line for all ranks of a host with one kind of device. `ranks`: by rank. `links`: by host in the order of their
/// first ranks; none where not measured.
std::string rank_table(const std::vector<RankAbout>& ranks, const std::vector<std::optional<HostLink>>& links);

/// Errors: Error(comm) naming the host whose program differs from rank 0's.
void expect_one_program(const std::vector<RankAbout>& ranks);
/// A warning for each host whose clock differs from rank 0's by more than 5 s.
std::vector<std::string> wrong_clocks(const std::vector<RankAbout>& ranks);

/// Collective. Rank 0 measures how fast other hosts send to its own, logs the table, and warns of wrong clocks.
/// `process`: of this rank. Does nothing on the CPU ranks of a single process, one of `processes`. Errors: those of
/// expect_one_program(), on all ranks.
void show_ranks(Communicator&, Device, const ProcessPlace&, const Environment&, const Log&);

}  // namespace hctr
