// Regions of shared memory that clients have registered for inputs and outputs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "config/json.h"
#include "core/base/thread_pool.h"
#include "serve/buffer_pool.h"
#include "serve/infer_request.h"
#include "serve/shared_region.h"

namespace hctr::serve {

/// Thread-safe. A region has one name, whatever its kind. Other processes may change a region at any time, so inputs
/// are copied before they are validated.
class SharedRegions {
 public:
  using Kind = SharedRegion::Kind;
  /// Whether clients may register regions of each kind.
  struct Allowed {
    bool system = false, cuda = false;
  };
  explicit SharedRegions(Allowed allowed) : allowed_(allowed) {}

  /// Registers a region of system shared memory. Errors: those of open_system_region(); Refusal if the kind is not
  /// allowed, or the name is in use.
  void add_system(const std::string& name, const std::string& key, int64_t offset, int64_t bytes);
  /// Registers a region of GPU memory. Errors: those of open_cuda_region(); Refusal if the kind is not allowed, or the
  /// name is in use.
  void add_cuda(const std::string& name, const std::string& handle, int64_t device, int64_t bytes);
  /// Unregisters a region; empty: all regions of this kind. An unknown name is ignored.
  void remove(Kind, const std::string& name);
  /// The status of one region, or of all regions of this kind if `name` is empty. Errors: Refusal.
  Json status(Kind, const std::string& name) const;

  /// Loads the data of inputs whose parameters name a region. Errors: Refusal for bytes outside the region.
  void attach(InferRequest&) const;
  /// Writes an output to the region that its parameters name. Returns false if they name none. Errors: Refusal.
  bool deliver(const WantedOutput&, const NamedTensor&) const;

 private:
  void expect_allowed(Kind, const std::string& name) const;
  void add(const std::string& name, std::shared_ptr<SharedRegion>);
  /// The region that the parameters of a tensor name, and the range of bytes in it; null: no region is named.
  std::shared_ptr<SharedRegion> find(const std::string& tensor, const Parameters&, int64_t& first,
                                     int64_t& bytes) const;

  Allowed allowed_;
  /// Copies a range of a region, with several threads if it is large. Returns false if the memory is gone.
  bool read(const SharedRegion&, int64_t first, char* to, size_t bytes) const;

  mutable BufferPool buffers_;
  mutable std::mutex copying_;  // guards `copiers_`
  mutable std::unique_ptr<ThreadPool> copiers_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SharedRegion>> regions_;
};

}  // namespace hctr::serve
