// What /proc/cpuinfo says of the processor.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// Its name, or "CPU" where none is told.
std::string processor_name();

/// Whether it has these instructions, by the word that the system has for them ("avx2", "avx512f").
bool processor_has(std::string_view instructions);

}  // namespace hctr
