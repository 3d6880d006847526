#include "infer/run_ids.h"

#include <array>
#include <fstream>

#include "config/json.h"
#include "core/base/expect.h"

namespace hctr {

std::string run_in_about(const fs::path& about) try {
  if (!fs::exists(about)) return {};
  const Json json = Json::read_file(about);
  const Json* run = json.find("run");
  return run && run->string() ? *run->string() : "";
} catch (const Error&) {
  return {};
}

std::string run_in_metrics(const fs::path& file) {
  std::ifstream metrics(file);
  // larger than any valid first line; bounds the read of an invalid file without newlines
  std::array<char, 1 << 14> line;
  if (!metrics.getline(line.data(), line.size())) return {};
  try {
    const Json start = Json::parse(line.data(), kMetrics);
    const Json* run = start.find("run");
    return run && run->string() ? *run->string() : "";
  } catch (const Error&) {
    return {};  // not a file of this program
  }
}

}  // namespace hctr
