// Code shared by the fuzz entries for model files and checkpoints.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include "config/json.h"
#include "config/sections/config.h"
#include "core/base/files.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {

inline std::string bytes_text(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

/// Splits `bytes` at the first zero byte, which belongs to neither part.
inline std::pair<Bytes, Bytes> split_at_zero(Bytes bytes) {
  size_t at = 0;
  while (at < bytes.size() && bytes[at] != 0) ++at;
  return {bytes.first(at), bytes.subspan(std::min(at + 1, bytes.size()))};
}

/// Parses a manifest without checking its checksum. Returns an empty Json if the text is not JSON.
inline Json manifest_json(Bytes bytes) {
  try {
    return Json::parse(bytes_text(bytes), "manifest");
  } catch (const Error& error) {
    expect(error.kind() == Kind::config);
    return {};
  }
}

/// A folder of this process for files in memory (/dev/shm).
class ModelFolder {
 public:
  ModelFolder() : path_(fs::path("/dev/shm") / cat("hctr-fuzz-", ::getpid())) { fs::create_directories(path_); }
  ~ModelFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  fs::path write(const std::string& name, Bytes bytes) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file << bytes_text(bytes);
    expect(file.good());
    return path_ / name;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};
inline const ModelFolder& model_folder() {
  static const ModelFolder folder;
  return folder;
}

/// Creates a subfolder of model_folder().
inline fs::path new_folder(const std::string& name) {
  fs::create_directories(model_folder().path() / name);
  return model_folder().path() / name;
}

/// A file that stays open while the fuzzer replaces its content.
class RewrittenFile {
 public:
  explicit RewrittenFile(const fs::path& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    expect(descriptor_ >= 0);
  }
  ~RewrittenFile() { ::close(descriptor_); }
  RewrittenFile(const RewrittenFile&) = delete;
  RewrittenFile& operator=(const RewrittenFile&) = delete;
  void write(Bytes bytes) const {
    expect(::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    if (bytes.size() != size_) expect(::ftruncate(descriptor_, static_cast<off_t>(bytes.size())) == 0);
    size_ = bytes.size();
  }

 private:
  int descriptor_;
  mutable size_t size_ = SIZE_MAX;
};

/// Config of a model with a wide and a deep table, a layer with statistics, and Adam.
const Config& fuzzed_model();

}  // namespace hctr::fuzz
