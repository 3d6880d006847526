// The models of a service: what there is, what is loaded, and new versions in place of old ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"
#include "serve/model_version.h"
#include "serve/serve_options.h"
#include "serve/served_store.h"

namespace hctr::serve {

enum class ModelState { ready, unavailable, loading, unloading };
std::string_view word_of(ModelState);

/// A row of the index. A model that was never loaded has no version.
struct IndexRow {
  std::string name, version{};
  std::optional<ModelState> state{};
  std::string reason{};
};

/// Where a model is: a folder with config.pbtxt and versions, or a model alone, whose version is its iteration.
struct ModelSource {
  std::string path;
  bool versioned = false;
};

/// find(), index() and ready() are for any thread at any time; the others for one thread at a time.
class ModelRepository {
 public:
  /// Errors: Error(config) for a source that is neither a folder of models nor a model, and for two of one name.
  /// `store`, which may be null, outlives the repository.
  explicit ModelRepository(const ServeOptions&, const ServedStore* store = nullptr);
  ~ModelRepository();

  /// Loads what the control mode says. Errors: those of the first model that fails.
  void load_first();
  /// Loads the versions that there are now and that its version policy wants; those whose files have not changed stay.
  /// The new set takes the place of the old one at once, when all are ready; after an error the old one stays.
  /// `config`: JSON in place of config.pbtxt. Errors: Refusal, Error.
  void load(const std::string& model, const std::optional<std::string>& config = {});
  /// Errors: Refusal where there is no such model.
  void unload(const std::string& model);
  /// Loads what is new or has changed, and unloads what is gone. What fails goes to the log.
  void poll();
  /// Waits for requests of versions that were replaced, and frees them.
  void drain();

  /// A version, or the newest. Errors: Refusal(not_found).
  std::shared_ptr<ModelVersion> find(const std::string& model, const std::string& version, int64_t* number) const;
  std::vector<IndexRow> index(bool ready_only) const;
  /// The versions that are ready, by number.
  std::map<int64_t, std::shared_ptr<ModelVersion>> versions(const std::string& model) const;
  std::vector<std::string> models() const;
  /// Whether every model that was to be loaded is.
  bool ready() const;

 private:
  struct Loaded {
    std::shared_ptr<ModelVersion> version;
    std::string fingerprint;
  };
  struct State {
    ModelState state;
    std::string reason;
  };
  struct Entry {
    std::map<int64_t, Loaded> versions{};
    std::map<int64_t, State> states{};
  };
  std::map<std::string, ModelSource> scan() const;
  bool is_saved_model(const std::string& path) const;
  void add_models(const std::string& source, std::map<std::string, ModelSource>&) const;
  ModelConfig config_of(const std::string& model, const ModelSource&, const std::optional<std::string>& given) const;
  std::map<int64_t, std::string> wanted_versions(const ModelSource&, const ModelConfig&) const;
  void set_state(const std::string& model, int64_t version, ModelState, const std::string& reason);
  void replace(const std::string& model, std::map<int64_t, Loaded>, const std::string& reason_of_old);

  ServeOptions options_;
  const ServedStore* store_;
  Log log_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, ModelSource> sources_;
  std::map<std::string, Entry> entries_;
  std::vector<std::shared_ptr<ModelVersion>> retired_;
  std::map<std::string, std::string> polled_;  // state of the files at the last look
};

}  // namespace hctr::serve
