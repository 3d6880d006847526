// At the start of a run, logs the hosts, devices and drivers, and the links between them.
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

/// The description that a rank sends to rank 0.
struct RankAbout {
  std::string host;  ///< name of the host
  int process = 0;
  std::string device;  ///< description of the rank's device
  /// driver: version of the GPU driver, empty on a CPU; version: of this program
  std::string driver, version;
  std::string gpu_id;  ///< id of the GPU, from gpu_links(); empty on a CPU
  /// GPUs of the same host. nvlink: joined to this GPU by NVLink; unreachable: without peer access to this GPU
  std::vector<std::string> nvlink = {}, unreachable = {};
  int64_t clock_ms = 0;      ///< milliseconds since 1970
  std::string host_id = {};  ///< NCCL_HOSTID, if it differs from the host's name

  /// The key that identifies a host, as in Communicator::host_of.
  const std::string& host_key() const { return host_id.empty() ? host : host_id; }
  /// "name", or "name (NCCL_HOSTID)".
  std::string host_label() const;
};

/// Converts between a description and the text that a rank sends to rank 0. A rank with another version may send fewer
/// fields; missing fields are empty, and expect_one_program() then reports the rank.
std::string about_to_text(const RankAbout&);
RankAbout about_from_text(const std::string&);

/// The link from a host to rank 0's host, measured over the transport between processes.
struct HostLink {
  double bytes_a_second = 0, seconds = 0;  ///< bytes_a_second: the rate; seconds: the time of an empty message
};

/// One line per host and kind of device. `ranks`: in rank order. `links`: by host, in the order of hosts' first ranks;
/// none if not measured.
std::string rank_table(const std::vector<RankAbout>& ranks, const std::vector<std::optional<HostLink>>& links);

/// Errors: Error(comm) with the name of a host whose program version differs from rank 0's.
void expect_one_program(const std::vector<RankAbout>& ranks);
/// A warning for each host whose clock differs from rank 0's by more than 5 s.
std::vector<std::string> wrong_clocks(const std::vector<RankAbout>& ranks);

/// Collective. Rank 0 measures the rates from other hosts to its own host, logs the table, and warns of wrong clocks.
/// `ProcessPlace`: the place of this rank's process. Does nothing for CPU ranks of a single process. Errors: those of
/// expect_one_program(), on all ranks.
void show_ranks(Communicator&, Device, const ProcessPlace&, const Environment&, const Log&);

}  // namespace hctr
