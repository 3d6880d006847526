// Searches for the number of GPUs whose memory suffices for a config.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/sections/config.h"

namespace hctr {

/// Hosts are assumed to have this many GPUs.
inline constexpr int64_t kGpusOfHost = 8;

/// A number of GPUs above `too_few` on which a config fits, close to the smallest such number; none if it does not fit
/// on 256 GPUs, on more GPUs than a batch has samples, or if a placement_file fixes the number. `distinct`: as for
/// memory_bill(). `gpu_bytes`: memory of each GPU. Includes the memory to pack messages between hosts. Errors: those of
/// memory_bill().
std::optional<int64_t> enough_gpus(const Config&, int64_t too_few, const std::vector<std::vector<int64_t>>& distinct,
                                   double gpu_bytes);

}  // namespace hctr
