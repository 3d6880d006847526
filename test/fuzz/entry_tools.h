// Code shared by all fuzz entries.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "core/base/expect.h"
#include "formats/data/data_section.h"
#include "formats/data/sample_block.h"
#include "fuzz/entries.h"

namespace hctr::fuzz {

/// Crashes if `holds` is false, that is, if the parser violates an invariant.
inline void expect(bool holds) {
  if (!holds) std::abort();
}

/// Runs `body`. Invalid data must throw Error(data) or Error(io), no other exception.
template <class Body>
void tolerate(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    expect(error.kind() == Kind::data || error.kind() == Kind::io);
  }
}

/// Removes and returns the first byte; returns 0 if `bytes` is empty.
inline uint8_t take(Bytes& bytes) {
  if (bytes.empty()) return 0;
  const uint8_t first = bytes[0];
  bytes = bytes.subspan(1);
  return first;
}

/// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    expect(descriptor_ >= 0);
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t wrote = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
      expect(wrote > 0);
      done += static_cast<size_t>(wrote);
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

inline DataSection small_section(int64_t dense, std::vector<std::array<int64_t, 3>> slots_nnz_keys) {
  DataSection section;
  section.label = {"label", 1};
  section.dense = {"dense", dense};
  for (const auto& [slots, nnz, keys] : slots_nnz_keys) {
    SparseInput input;
    input.top = "x" + std::to_string(section.sparse.size());
    input.slot_num = slots;
    input.max_nnz = nnz;
    input.max_feature_num_per_sample = keys;
    section.sparse.push_back(input);
  }
  return section;
}

/// Checks the invariants of every block.
inline void expect_whole(const SampleBlock& block, const RecordShape& shape) {
  const auto bags = static_cast<size_t>(block.rows * shape.slots());
  expect(block.rows >= 0 && block.offsets.size() > bags && block.offsets[0] == 0);
  for (size_t b = 0; b < bags; ++b) expect(block.offsets[b] <= block.offsets[b + 1]);
  expect(block.keys.size() >= static_cast<size_t>(block.offsets[bags]));
  expect(block.label.size() >= static_cast<size_t>(block.rows * shape.label_dim) &&
         block.dense.size() >= static_cast<size_t>(block.rows * shape.dense_dim));
}

}  // namespace hctr::fuzz
