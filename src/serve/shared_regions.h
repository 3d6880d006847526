// System shared memory regions that clients have registered for inputs and outputs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "config/json.h"
#include "serve/infer_request.h"

namespace hctr::serve {

/// Thread-safe. Another process may change the content and size of a region at any time. Inputs are therefore copied
/// before validation, and are copied by pread(), which fails if the memory is gone; access through a mapping would end
/// this process.
class SharedRegions {
 public:
  explicit SharedRegions(bool allowed) : allowed_(allowed) {}

  /// Registers a region. `key`: the name for shm_open(). Errors: Refusal if shared memory is not enabled, for a name in
  /// use, and for bytes outside the region.
  void add(const std::string& name, const std::string& key, int64_t offset, int64_t bytes);
  /// Unregisters a region; empty: all regions. An unknown name is ignored.
  void remove(const std::string& name);
  /// The status of one region, or of all regions if `name` is empty. Errors: Refusal.
  Json status(const std::string& name) const;

  /// Loads the data of inputs whose parameters name a region. Errors: Refusal for bytes outside the region.
  void attach(InferRequest&) const;
  /// Writes an output to the region that its parameters name. Returns false if they name none. Errors: Refusal.
  bool deliver(const WantedOutput&, const NamedTensor&) const;

 private:
  struct Region;
  /// The region that the parameters of a tensor name, and the range of bytes in it; null: no region is named.
  std::shared_ptr<Region> find(const std::string& tensor, const Parameters&, int64_t& begin, int64_t& bytes) const;

  bool allowed_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Region>> regions_;
};

}  // namespace hctr::serve
