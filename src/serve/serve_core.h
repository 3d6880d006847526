// The operations of the service, shared by all front ends.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/json.h"
#include "serve/control_thread.h"
#include "serve/infer_request.h"
#include "serve/model_repository.h"
#include "serve/served_store.h"
#include "serve/shared_regions.h"

namespace hctr::serve {

/// Thread-safe.
class ServeCore {
 public:
  /// Loads the models that the options name. Errors: those of ModelRepository.
  explicit ServeCore(const ServeOptions&);
  /// Must be destroyed after the front ends. Scores the queued requests.
  ~ServeCore();

  /// Scores a request; `answer` receives the response. Refuses the request if the inputs of all waiting requests
  /// together exceed HttpLimits::total_bytes(). The `done` callbacks of load() and unload() are called by another
  /// thread.
  void infer(InferRequest, Answer);
  using Done = std::function<void(Status)>;
  void load(std::string model, std::optional<std::string> config, Done);
  void unload(std::string model, Done);

  /// Returns false after stop(), and until all requested models are loaded.
  bool ready() const;
  /// Makes ready() return false.
  void stop() { stops_ = true; }

  // Responses of the protocol as JSON. Errors: Refusal.
  Json server_metadata() const;
  Json model_metadata(const std::string& model, const std::string& version) const;
  Json model_config(const std::string& model, const std::string& version) const;
  bool model_ready(const std::string& model, const std::string& version) const;
  /// Statistics of one model, or of all models if `model` is empty.
  Json statistics(const std::string& model, const std::string& version) const;
  Json index(bool ready_only) const;

  const ModelRepository& repository() const { return repository_; }
  const ServedStore* store() const { return store_.get(); }
  SharedRegions& regions() { return regions_; }

 private:
  ServeOptions options_;
  // Bytes of waiting requests. Declared before the models, because their destructors answer requests.
  std::atomic<int64_t> input_bytes_{0};
  std::unique_ptr<ServedStore> store_;  // null: no store. Declared before the models, because they use its tables.
  ModelRepository repository_;
  SharedRegions regions_;
  std::atomic<bool> stops_ = false;
  Clock::time_point polled_ = Clock::now();
  std::unique_ptr<ControlThread> control_;  // declared last, so that it is destroyed first
};

}  // namespace hctr::serve
