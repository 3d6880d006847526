// Reads the processor's name and features from /proc/cpuinfo.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// The processor's name, or "CPU" if unknown.
std::string processor_name();

/// Whether the processor supports an instruction set, by its flag in /proc/cpuinfo ("avx2", "avx512f").
bool processor_has(std::string_view instructions);

}  // namespace hctr
