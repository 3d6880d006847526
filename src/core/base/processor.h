// Reads /proc/cpuinfo.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// The processor's name, or "CPU" if unknown.
std::string processor_name();

/// Whether it has these instructions, by the word that the system has for them ("avx2", "avx512f").
bool processor_has(std::string_view instructions);

}  // namespace hctr
