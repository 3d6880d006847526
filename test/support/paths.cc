#include "support/paths.h"

namespace hctr::test {

std::filesystem::path source_dir() { return HCTR_SOURCE_DIR; }
std::filesystem::path bin_dir() { return HCTR_BIN_DIR; }

}  // namespace hctr::test
