#include "train/enough_gpus.h"

#include <algorithm>

#include "train/memory_bill.h"

namespace hctr {
namespace {

constexpr int64_t kMostGpus = 256;

bool fits_on(const Config& config, int64_t gpus, const std::vector<std::vector<int64_t>>& distinct, double gpu_bytes) {
  const MemoryBill bill = memory_bill(config, gpus, distinct, gpu_bytes);
  for (size_t g = 0; g < bill.gpus.size(); ++g) {
    const int64_t to_pack = gpus > kGpusOfHost ? bill.between_hosts[g] : 0;
    if (static_cast<double>(sum_of(bill.gpus[g]) + to_pack) > gpu_bytes) return false;
  }
  return true;
}

}  // namespace

std::optional<int64_t> enough_gpus(const Config& config, int64_t too_few,
                                   const std::vector<std::vector<int64_t>>& distinct, double gpu_bytes) {
  if (!config.solver.placement_file.empty()) return std::nullopt;
  const int64_t most = std::min(kMostGpus, config.solver.batchsize);
  const auto fits = [&](int64_t gpus) { return fits_on(config, gpus, distinct, gpu_bytes); };
  int64_t enough = too_few;
  do {
    if (enough >= most) return std::nullopt;
    too_few = enough;
    enough = std::min(most, 2 * enough);
  } while (!fits(enough));
  while (too_few + 1 < enough) {
    const int64_t middle = (too_few + enough) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace hctr
