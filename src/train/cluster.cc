// Parses the user's description of hosts and networks.
#include <charconv>
#include <cmath>

#include "core/base/expect.h"
#include "train/scale_forecast.h"

namespace hctr {
namespace {

// fraction of an adapter's nominal rate that carries data
constexpr double kOfNamed = 0.9;
// Assumed latency of an exchange, over InfiniBand and over TCP.
constexpr double kInfiniBand = 20e-6, kEthernet = 50e-6;

double number_in(const std::string& text, const std::string& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || !std::isfinite(value))
    throw Error(Kind::usage, cat(where, ": '", text, "' is not a number above 0"));
  return value;
}

int64_t whole_number_in(const std::string& text, const std::string& where, int64_t most) {
  const double value = number_in(text, where);
  if (value != std::floor(value) || value > static_cast<double>(most))
    throw Error(Kind::usage, cat(where, ": '", text, "' is not a whole number from 1 to ", most));
  return static_cast<int64_t>(value);
}

/// Parses a rate in GB/s and a latency in microseconds, as in "45:20".
Cluster::Links links_in(const std::string& text, const std::string& where) {
  const size_t colon = text.find(':');
  if (colon == text.npos)
    throw Error(Kind::usage,
                cat(where, ": '", text, "' lacks the latency in microseconds: expected GB/s:us, as in 45:20"));
  return {number_in(text.substr(0, colon), where) * 1e9, number_in(text.substr(colon + 1), where) * 1e-6};
}

Cluster::Links network_in(const std::string& text) {
  const std::string where = "--simulate network";
  if (text.find(':') != text.npos) return links_in(text, where);
  const size_t times = text.find('x');
  const std::string adapter = times == text.npos ? text : text.substr(times + 1);
  const bool infiniband = adapter.starts_with("ib"), ethernet = adapter.starts_with("eth");
  if (!infiniband && !ethernet)
    throw Error(Kind::usage, cat(where, "=", text,
                                 ": expected ib or eth with Gb/s, as in ib400, eth100 or 8xib400, or GB/s per host and "
                                 "latency in microseconds, as in 45:20"));
  const double count = times == text.npos ? 1 : number_in(text.substr(0, times), where);
  const double gigabits = number_in(adapter.substr(infiniband ? 2 : 3), where);
  return {count * gigabits * 1e9 / 8 * kOfNamed, infiniband ? kInfiniBand : kEthernet};
}

}  // namespace

Cluster cluster_from(const std::string& text) {
  Cluster cluster;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at), name = word.substr(0, word.find('=')),
                      value = word.size() > name.size() ? word.substr(name.size() + 1) : "";
    at = end + 1;
    if (name == "hosts") {
      cluster.hosts = whole_number_in(value, "--simulate hosts", 65536);
    } else if (name == "gpus") {
      cluster.gpus = whole_number_in(value, "--simulate gpus", 64);
    } else if (name == "network") {
      cluster.network = value;
      cluster.between = network_in(value);
    } else if (name == "links") {
      // The rate of NVLink was measured on four H200; PCIe 4 with 16 lanes is assumed.
      if (value == "pcie")
        cluster.inside = {20e9, 20e-6};
      else if (value != "nvlink")
        cluster.inside = links_in(value, "--simulate links");
    } else {
      throw Error(Kind::usage, cat("--simulate: '", word, "'; expected hosts=, gpus=, network= or links="));
    }
  }
  if (cluster.hosts > 1 && cluster.network.empty())
    throw Error(Kind::usage, "--simulate: several hosts need network=, as in network=8xib400");
  return cluster;
}

MeasuredStep measured_step_from(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == text.npos)
    throw Error(Kind::usage, cat("--measured: '", text, "'; expected SAMPLES:MS, as in 16384:1.05"));
  return {whole_number_in(text.substr(0, colon), "--measured", int64_t{1} << 40),
          number_in(text.substr(colon + 1), "--measured") * 1e-3};
}

}  // namespace hctr
