// Regions of the system's shared memory that clients have registered, for inputs and outputs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "config/json.h"
#include "serve/infer_request.h"

namespace hctr::serve {

/// Any thread. Another process may change what is in a region, and its size, at any time: inputs are copied before they
/// are checked, by reads, which fail where memory is gone; a mapping would end this process then.
class SharedRegions {
 public:
  explicit SharedRegions(bool allowed) : allowed_(allowed) {}

  /// `key`: the name of shm_open(). Errors: Refusal where the service does not allow it, for a name in use, and for
  /// bytes that the region does not have.
  void add(const std::string& name, const std::string& key, int64_t offset, int64_t bytes);
  /// Of an unknown name it does nothing; empty: all.
  void remove(const std::string& name);
  /// One region, or all where `name` is empty. Errors: Refusal.
  Json status(const std::string& name) const;

  /// Gives inputs whose parameters name a region their data. Errors: Refusal for bytes outside of it.
  void attach(InferRequest&) const;
  /// Writes an output where its parameters name a region. Returns whether they do. Errors: Refusal.
  bool deliver(const WantedOutput&, const NamedTensor&) const;

 private:
  struct Region;
  /// The bytes that the parameters of a tensor name; null: they name no region.
  std::shared_ptr<Region> find(const std::string& tensor, const Parameters&, int64_t& begin, int64_t& bytes) const;

  bool allowed_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Region>> regions_;
};

}  // namespace hctr::serve
