#include "core/base/processor.h"

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace hctr {
namespace {

/// The value of the first line "<name> : <value>" in /proc/cpuinfo.
std::string line_of_processor(std::string_view name) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with(name))
      if (const size_t colon = line.find(": "); colon != line.npos) return line.substr(colon + 2);
  return "";
}

}  // namespace

std::string processor_name() {
  const std::string name = line_of_processor("model name");
  return name.empty() ? "CPU" : name;
}

bool processor_has(std::string_view instructions) {
  static const std::set<std::string, std::less<>> words = [] {
    std::istringstream line(line_of_processor("flags"));
    return std::set<std::string, std::less<>>(std::istream_iterator<std::string>(line), {});
  }();
  return words.contains(instructions);
}

}  // namespace hctr
