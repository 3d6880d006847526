// What the service does, whatever front end a call comes by.
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

/// Any thread.
class ServeCore {
 public:
  /// Loads the models that the options name. Errors: those of ModelRepository.
  explicit ServeCore(const ServeOptions&);
  /// After the front ends. Scores what waits.
  ~ServeCore();

  /// Answers as `answer` gets them; `done` of the control calls is called by another thread.
  void infer(InferRequest, Answer);
  using Done = std::function<void(Status)>;
  void load(std::string model, std::optional<std::string> config, Done);
  void unload(std::string model, Done);

  /// False once stop() was called, and while a model that is to be loaded is not.
  bool ready() const;
  /// From now on the service says that it is not ready.
  void stop() { stops_ = true; }

  // The messages of the protocol. Errors: Refusal.
  Json server_metadata() const;
  Json model_metadata(const std::string& model, const std::string& version) const;
  Json model_config(const std::string& model, const std::string& version) const;
  bool model_ready(const std::string& model, const std::string& version) const;
  /// Of one model, or of all where `model` is empty.
  Json statistics(const std::string& model, const std::string& version) const;
  Json index(bool ready_only) const;

  const ModelRepository& repository() const { return repository_; }
  const ServedStore* store() const { return store_.get(); }
  SharedRegions& regions() { return regions_; }

 private:
  ServeOptions options_;
  std::unique_ptr<ServedStore> store_;  // null: none; models have its tables, so it ends after them
  ModelRepository repository_;
  SharedRegions regions_;
  std::atomic<bool> stops_ = false;
  Clock::time_point polled_ = Clock::now();
  std::unique_ptr<ControlThread> control_;  // ends first
};

}  // namespace hctr::serve
