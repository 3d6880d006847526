// The file of GEMM algorithms, as text:
//
//   huge_ctr algorithms of matrix products 1
//   of <device and version of the library>
//   <17 numbers: the GEMM> <the algorithm: 128 hexadecimal digits>
//   crc <of the bytes before this line>
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "hctr/surroundings.h"
#include "ops/gemm/product_search.h"

namespace hctr {

std::string product_text(const std::string& library, const ops::ProductAlgorithms&);

/// Errors: Error(data) with the reason if the text is damaged or belongs to another device or library.
ops::ProductAlgorithms products_of_text(std::string_view text, const std::string& library);

/// The path of the default algorithm file in $XDG_CACHE_HOME/huge_ctr or ~/.cache/huge_ctr. Each device and library has
/// its own file. Empty if neither XDG_CACHE_HOME nor HOME is set.
std::filesystem::path product_cache_path(const std::string& library, const Environment&);

}  // namespace hctr
