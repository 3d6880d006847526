// A trained model for inference in this process, usable by any number of threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/arrays.h"
#include "hctr/export.h"
#include "hctr/solver.h"

namespace hctr {

class StoreView;

/// An input or an output of a model.
struct ModelTensor {
  enum class Role { dense, keys, scores, labels };
  Role role;
  std::string name;            ///< the tensor's "top" in the config; for scores, the loss layer's top
  std::vector<int64_t> shape;  ///< keys: [-1, slots]; other tensors: [-1, columns]; -1: any number of samples
  /// For keys: the maximum number of keys per bag, for each slot. The config decides which keys of a longer bag are
  /// used.
  std::vector<int64_t> most_keys{};
};

/// The caller's memory for one input of a batch.
struct InputView {
  std::string_view name;
  const void* data = nullptr;           ///< dense: f32 [samples, columns]; keys: see `offsets`
  ElementType type = ElementType::f32;  ///< type of `data`: f32 for dense values, an integer type for keys
  /// Elements between the starts of two samples, for dense values and for keys without offsets; 0: contiguous.
  int64_t stride = 0;
  /// [samples * slots + 1]: slot s of sample b has the keys [offsets[b * slots + s], offsets[b * slots + s + 1]). Null:
  /// every slot has one key, and `data` is [samples, slots].
  const void* offsets = nullptr;
  ElementType offsets_type = ElementType::i64;  ///< i32 or i64
  /// -1: `data` is in host memory. Otherwise the GPU whose memory has `data`: it must be the model's GPU, and `offsets`
  /// must be null, because bags must be in host memory.
  int gpu = -1;
  void* stream = nullptr;  ///< for GPU memory: the cudaStream_t whose queued work produces the data
};

/// The caller's memory for the scores of one output: f32 [samples, columns].
struct OutputView {
  std::string_view name;
  float* data = nullptr;
  int64_t stride = 0;      ///< elements between the starts of two samples; 0: contiguous
  int gpu = -1;            ///< the GPU of `data`, as in InputView
  void* stream = nullptr;  ///< for GPU memory: scores are written after the work queued on this cudaStream_t
};

struct EvaluationSummary;

struct LoadOptions {
  /// A run folder, a checkpoint, or a snapshot_prefix; `@<iteration>` appended selects an older model. Or the file of a
  /// dense model.
  std::string model;
  std::filesystem::path config = {};      ///< empty: the config saved with the model
  std::vector<std::string> changes = {};  ///< changes of config fields: "solver.mixed_precision=1024"
  DeviceChoice device = DeviceChoice::automatic;
  std::optional<int> threads = {};  ///< CPU threads for each call of score(); none: all usable cores
  /// Maximum samples per batch; larger batches are split. The memory for activations is proportional to this number.
  int64_t most_samples = 65536;
  std::function<void(std::string_view line)> note = {};  ///< receives warnings and notes; empty: they are discarded
  /// The model uses two members: `environment`, and set_environment() when the library loads BLAS.
  Surroundings surroundings = {};
  /// If set, score() looks up rows in this view of a store and sees the store's updates. The model then loads no table
  /// files. Each call of score() reads one state of the store. The view must have every table of the model, under the
  /// same name. On a GPU, rows are read through a GPU cache (StoreOptions::cache). All models that use this version of
  /// the store's model share the cache. If another program changes the store's rows, the model must run on a CPU.
  std::shared_ptr<const StoreView> tables = {};
};

/// The inputs are what the first layers read. Dense values come after the transforms of the config's dense columns.
/// Keys are table keys: texts are already hashed, and slot offsets are already added.
///
/// A model has weights and tables, but no gradients or optimizer states. Concurrent calls of score() have separate
/// memory for activations, which later calls reuse. On a CPU, the score of a sample is the same, bit for bit, for any
/// batch size and number of threads. On a GPU this holds only between batches of equal size, because GEMMs of other
/// sizes sum in another order. A GPU scores a batch of 16,384 samples or more in pieces of at least 8,192 samples.
class HCTR_API Model {
 public:
  /// Loads a model. Errors: Error(io) if the model does not exist; Error(config), Error(data) if its files do not
  /// match; Error(device).
  explicit Model(const LoadOptions&);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // The members below describe the loaded model. Thread-safe.
  std::vector<ModelTensor> inputs() const;
  std::vector<ModelTensor> outputs() const;
  std::string name() const;  ///< for example "the final model of run 'runs/a', iteration 60"
  int64_t iteration() const;
  std::string device() const;

  /// Computes the scores of a batch, and returns when they are in the caller's memory. Each input must be given exactly
  /// once; outputs may be omitted. Any number of threads may call score() concurrently. Errors: Error(usage) for a
  /// missing or unknown name, a wrong type, or decreasing offsets; Error(device). After an error the contents of the
  /// outputs are undefined.
  void score(int64_t samples, std::span<const InputView> inputs, std::span<const OutputView> outputs) const;

  /// Receives consecutive rows of a source: the scores of each output, [rows, columns]; NaN for a skipped bad record.
  using ScoredRows = std::function<void(int64_t rows, std::span<const OutputView> scores)>;
  /// Scores all samples of a source in the format of the model's config. Labels are not needed. A source is a file, a
  /// list, a folder, a pattern, or a table in memory. Any number of threads may call predict() concurrently. Errors:
  /// those of reading data; Error(device); every exception of `rows`.
  void predict(const std::string& source, const ScoredRows& rows) const;
  /// Converts the samples of a source (see predict()) to inputs for score(), in batches. `partial`: slot columns may be
  /// missing; the bags of these slots are empty. Errors: those of reading data.
  using Encoded = std::function<void(int64_t samples, std::span<const InputView> inputs)>;
  void encode(const std::string& source, bool partial, const Encoded& samples) const;

  /// Computes the metrics of eval_metrics with the loaded model, on one rank. The results equal those of
  /// hctr::evaluate() on one rank, bit for bit. `source`: labeled samples (see predict()), all of which are used;
  /// empty: the config's eval_source, limited as the config says. `stop`: as JobOptions::stop. Slots and labels whose
  /// values match nothing cause warnings, and are listed in `matches`. Any thread: evaluations run one after another,
  /// concurrently with score(). Declared in hctr/use_model.h. Errors: those of reading data; Error(usage) without an
  /// eval_source; Error(device).
  EvaluationSummary evaluate(const std::string& source = {}, const std::atomic<int>* stop = nullptr) const;

  /// Replaces the model by another one. Running calls of score() finish with the old model, whose memory is then
  /// released. Any thread; concurrent calls of replace() run one after another. Errors: those of the constructor, and
  /// Error(config) if inputs or outputs differ. After an error the old model stays in use.
  void replace(const LoadOptions&);

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
