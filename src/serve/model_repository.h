// The models of a service: discovers them, loads them, and replaces old versions by new ones.
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

/// The location of a model: a folder with config.pbtxt and version folders (`versioned`), or a single saved model. The
/// version of a single model is its iteration.
struct ModelSource {
  std::string path;
  bool versioned = false;
};

/// The const members are thread-safe; the others must be called by one thread at a time.
class ModelRepository {
 public:
  /// `store`: the source of tables; null: none. It must outlive the repository. Errors: Error(config) for a source that
  /// is neither a folder of models nor a model, and for two models of the same name.
  explicit ModelRepository(const ServeOptions&, const ServedStore* store = nullptr);
  ~ModelRepository();

  /// Loads the models that the control mode selects at the start. Errors: those of the first model that fails.
  void load_first();
  /// Loads the versions that exist now and match the version policy. Versions with unchanged files stay loaded. When
  /// all versions are ready, the new set replaces the old set atomically; after an error the old set stays. `config`:
  /// JSON that replaces config.pbtxt. Errors: Refusal, Error.
  void load(const std::string& model, const std::optional<std::string>& config = {});
  /// Errors: Refusal if the model does not exist.
  void unload(const std::string& model);
  /// Loads new and changed models, and unloads models whose files are gone. Failures are logged.
  void poll();
  /// Waits for the requests of replaced versions, then frees these versions.
  void drain();

  /// Returns a version; an empty `version` means the newest. Errors: Refusal(not_found).
  std::shared_ptr<ModelVersion> find(const std::string& model, const std::string& version, int64_t* number) const;
  std::vector<IndexRow> index(bool ready_only) const;
  /// The ready versions, by number.
  std::map<int64_t, std::shared_ptr<ModelVersion>> versions(const std::string& model) const;
  std::vector<std::string> models() const;
  /// Whether every requested model has a ready version.
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
  std::map<std::string, std::string> polled_;  // state of the files at the last poll()
};

}  // namespace hctr::serve
