#include "train/rank_table.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "config/json.h"
#include "core/base/build_info.h"
#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "core/base/printable.h"
#include "core/base/progress.h"
#include "core/base/wall_time.h"
#include "core/comm/collective_error.h"
#include "core/device/gpu_links.h"
#include "train/run_about.h"

namespace hctr {
namespace {

constexpr int64_t kClockDifferenceMs = 5000;
constexpr size_t kMeasuredBytes = 4 << 20;
constexpr size_t kMostMeasuredHosts = 32;  // limits the measuring time, because hosts are measured one after another

/// Writes sorted numbers as ranges, such as "0-3, 7".
std::string ranges_text(const std::vector<int>& sorted) {
  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    text += cat(text.empty() ? "" : ", ", sorted[i], end - i > 1 ? cat("-", sorted[end - 1]) : "");
    i = end;
  }
  return text;
}

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// The kinds of links between pairs of ranks on one host: "NVLink", "PCIe, host memory".
std::string links_on_host(const std::vector<RankAbout>& ranks, const std::vector<int>& here) {
  std::set<std::string> kinds;
  for (const int a : here)
    for (const int b : here) {
      const RankAbout &from = ranks[static_cast<size_t>(a)], &to = ranks[static_cast<size_t>(b)];
      if (a >= b) continue;
      if (from.gpu_id.empty())
        kinds.insert(from.process == to.process ? "same process" : "other process");
      else if (names(from.unreachable, to.gpu_id) || names(to.unreachable, from.gpu_id))
        kinds.insert("host memory");
      else
        kinds.insert(names(from.nvlink, to.gpu_id) ? "NVLink" : "PCIe");
    }
  std::string text;
  for (const std::string& kind : kinds) text += cat(text.empty() ? "" : ", ", kind);
  return text.empty() ? "-" : text;
}

/// The ranks of each host. Hosts are ordered by their first ranks.
std::vector<std::vector<int>> by_host(const std::vector<RankAbout>& ranks) {
  std::vector<std::vector<int>> hosts;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto same = [&](const std::vector<int>& here) {
      return ranks[static_cast<size_t>(here[0])].host_key() == ranks[r].host_key();
    };
    auto found = std::find_if(hosts.begin(), hosts.end(), same);
    if (found == hosts.end()) found = hosts.insert(hosts.end(), std::vector<int>());
    found->push_back(static_cast<int>(r));
  }
  return hosts;
}

std::string label_of(const std::vector<RankAbout>& ranks, const std::vector<int>& here) {
  return ranks[static_cast<size_t>(here[0])].host_label();
}

/// The ranks that measure links: the first rank of each host, beginning with rank 0's host. Other ranks learn the hosts
/// from rank 0.
std::vector<int> first_ranks(Communicator& comm, const std::vector<RankAbout>& ranks) {
  std::string text;
  for (const auto& here : by_host(ranks)) text += cat(here.front(), " ");
  std::istringstream words(comm.broadcast(text, 0));
  std::vector<int> first;
  for (int rank = 0; words >> rank;) first.push_back(rank);
  return first;
}

std::vector<std::optional<HostLink>> measure_hosts(Communicator& comm, const std::vector<int>& first) {
  std::vector<std::optional<HostLink>> links(first.size());
  if (first.size() > kMostMeasuredHosts) return links;
  const std::string data(kMeasuredBytes, 'x'), nothing;
  for (size_t h = 1; h < first.size(); ++h) {
    const auto time_of_gather = [&](const std::string& of_first) {
      comm.barrier();
      const auto begin = std::chrono::steady_clock::now();
      comm.gather(comm.rank() == first[h] ? of_first : nothing, 0);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const double latency = std::min(time_of_gather(nothing), time_of_gather(nothing));
    const double whole = std::min(time_of_gather(data), time_of_gather(data));
    // Subtracts the latency, but at most half of the time, so that noise cannot yield an infinite rate.
    links[h] = HostLink{static_cast<double>(kMeasuredBytes) / std::max(whole - latency, whole / 2), latency};
  }
  return links;
}

}  // namespace

std::string about_to_text(const RankAbout& about) {
  const auto array_of = [](const std::vector<std::string>& words) {
    Json array(Json::Array{});
    for (const std::string& word : words) array.add(word);
    return array;
  };
  return Json(Json::Object{{"host", about.host},
                           {"process", about.process},
                           {"device", about.device},
                           {"driver", about.driver},
                           {"version", about.version},
                           {"gpu_id", about.gpu_id},
                           {"nvlink", array_of(about.nvlink)},
                           {"unreachable", array_of(about.unreachable)},
                           {"clock_ms", about.clock_ms},
                           {"host_id", about.host_id}})
      .text();
}

RankAbout about_from_text(const std::string& text) {
  const Json json = Json::parse(text, "the description of a rank");
  const auto word_in = [](const Json* value) { return value && value->string() ? *value->string() : std::string(); };
  const auto word = [&](const char* name) { return word_in(json.find(name)); };
  const auto words = [&](const char* name) {
    std::vector<std::string> all;
    if (const Json* value = json.find(name); value && value->array())
      for (const Json& each : *value->array()) all.push_back(word_in(&each));
    return all;
  };
  const auto number = [&](const char* name) {
    const Json* value = json.find(name);
    return value && value->integer() ? *value->integer() : int64_t{0};
  };
  return {word("host"),       static_cast<int>(number("process")),
          word("device"),     word("driver"),
          word("version"),    word("gpu_id"),
          words("nvlink"),    words("unreachable"),
          number("clock_ms"), word("host_id")};
}

std::string RankAbout::host_label() const { return host_id.empty() ? host : cat(host, " (", host_id, ")"); }

std::string rank_table(const std::vector<RankAbout>& ranks, const std::vector<std::optional<HostLink>>& links) {
  const auto hosts = by_host(ranks);
  std::vector<std::vector<std::string>> rows = {
      {"ranks", "host", "processes", "device", "driver", "links on the host"}};
  if (hosts.size() > 1) rows[0].push_back("sends to " + label_of(ranks, hosts[0]));
  for (size_t h = 0; h < hosts.size(); ++h) {
    const std::vector<int>& here = hosts[h];
    std::map<std::pair<std::string, std::string>, std::vector<int>> kinds;
    for (const int r : here) {
      const RankAbout& about = ranks[static_cast<size_t>(r)];
      kinds[{about.device, about.driver}].push_back(r);
    }
    bool first = true;
    for (const auto& [kind, of_kind] : kinds) {
      std::set<int> processes;
      for (const int r : of_kind) processes.insert(ranks[static_cast<size_t>(r)].process);
      std::vector<std::string> row = {ranges_text(of_kind),
                                      label_of(ranks, here),
                                      ranges_text({processes.begin(), processes.end()}),
                                      kind.first,
                                      kind.second.empty() ? "-" : kind.second,
                                      first ? links_on_host(ranks, here) : ""};
      if (hosts.size() > 1) {
        const bool measured = h < links.size() && links[h];
        row.push_back(!first || h == 0 ? ""
                      : measured       ? cat(with_unit_prefix(links[h]->bytes_a_second), "B/s, ",
                                             formatted("%.2f ms", links[h]->seconds * 1e3))
                                       : "not measured");
      }
      rows.push_back(std::move(row));
      first = false;
    }
  }
  std::string text = cat(ranks.size(), " ranks of huge_ctr ", ranks[0].version, " on ", hosts.size(),
                         hosts.size() == 1 ? " host:" : " hosts:");
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t c = 0; c < row.size(); ++c) {
      size_t width = 0;
      for (const auto& other : rows) width = std::max(width, other[c].size());
      line += " " + filled_up(row[c], width + 1);
    }
    text += "\n" + line.substr(0, line.find_last_not_of(' ') + 1);
  }
  return text;
}

void expect_one_program(const std::vector<RankAbout>& ranks) {
  for (size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].version != ranks[0].version)
      throw Error(Kind::comm,
                  cat("rank ", r, " on ", ranks[r].host_label(), " runs ", ranks[r].version, " and rank 0 on ",
                      ranks[0].host_label(), " runs ", ranks[0].version, ": all ranks must run the same program"));
}

std::vector<std::string> wrong_clocks(const std::vector<RankAbout>& ranks) {
  std::vector<std::string> sentences;
  for (const auto& here : by_host(ranks)) {
    // the largest clock difference of all ranks with this host name, because several hosts in containers may share a
    // name
    int64_t difference = 0;
    for (const int r : here) {
      const int64_t of_rank = ranks[static_cast<size_t>(r)].clock_ms - ranks[0].clock_ms;
      if (std::abs(of_rank) > std::abs(difference)) difference = of_rank;
    }
    if (std::abs(difference) > kClockDifferenceMs)
      sentences.push_back(cat("the clock of ", label_of(ranks, here), " is ", (std::abs(difference) + 500) / 1000,
                              " s ", difference > 0 ? "ahead of" : "behind", " that of ", ranks[0].host_label(),
                              ": time stamps in logs and names of run folders will differ"));
  }
  return sentences;
}

void show_ranks(Communicator& comm, Device device, const ProcessPlace& place, const Environment& environment,
                const Log& log) {
  if (comm.size() == 1 || (place.processes == 1 && !device.is_cuda())) return;
  RankAbout mine{.host = host_name(), .process = place.process, .device = describe(device), .version = build_name()};
  if (const std::string id = host_id(environment); id != mine.host) mine.host_id = id;
  if (device.is_cuda()) {
    GpuLinks links = gpu_links(device);
    mine.driver = driver_version();
    mine.gpu_id = std::move(links.id);
    mine.nvlink = std::move(links.nvlink);
    mine.unreachable = std::move(links.unreachable);
  }
  comm.barrier();  // makes all ranks read their clocks at the same time
  mine.clock_ms = static_cast<int64_t>(unix_time() * 1e3);
  std::vector<RankAbout> ranks;
  for (const std::string& text : comm.gather(about_to_text(mine), 0)) ranks.push_back(about_from_text(text));
  run_on_all_ranks(comm, [&] { expect_one_program(ranks); });
  const auto links = measure_hosts(comm, first_ranks(comm, ranks));
  if (comm.rank() != 0) return;
  log.info(rank_table(ranks, links));
  for (const std::string& sentence : wrong_clocks(ranks)) log.warning(sentence);
}

}  // namespace hctr
