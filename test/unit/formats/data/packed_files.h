// Writes compressed text files for tests.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <string>

#include "core/base/files.h"

namespace hctr::data_test {

inline void write_gzip(const fs::path& path, const std::string& text) {
  const gzFile file = ::gzopen(path.c_str(), "wb1");
  ::gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(file);
}

inline void write_zstd(const fs::path& path, const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  write_text(path, packed);
}

}  // namespace hctr::data_test
