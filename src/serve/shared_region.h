// Memory that a client has registered for inputs and outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "config/json.h"

namespace hctr::serve {

/// Thread-safe. Another process may change the content at any time, and may remove the memory.
class SharedRegion {
 public:
  enum class Kind { system, cuda };

  virtual ~SharedRegion() = default;
  virtual Kind kind() const = 0;
  virtual int64_t bytes() const = 0;
  /// The fields of the region in a status response, without its name.
  virtual Json status() const = 0;
  // These calls copy bytes of the region, from byte `first` on; the range must lie in the region. They return false if
  // the memory is gone.
  virtual bool read(int64_t first, char* to, size_t bytes) const = 0;
  virtual bool write(int64_t first, const char* from, size_t bytes) const = 0;
};

/// "system" or "cuda".
const char* word_of(SharedRegion::Kind);

/// A region of system shared memory. `key`: the name for shm_open(). Errors: Refusal naming the region, the value and
/// the expected value.
std::shared_ptr<SharedRegion> open_system_region(const std::string& name, const std::string& key, int64_t offset,
                                                 int64_t bytes);
/// A region of GPU memory. `handle`: the 64 bytes of cudaIpcMemHandle_t. Errors: Refusal, also without CUDA or GPU.
std::shared_ptr<SharedRegion> open_cuda_region(const std::string& name, const std::string& handle, int64_t device,
                                               int64_t bytes);

}  // namespace hctr::serve
