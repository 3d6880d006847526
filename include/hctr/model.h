// A trained model in the memory of this process: any number of threads score samples with it.
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
  std::string name;            ///< the "top" in the config; for scores, the loss's
  std::vector<int64_t> shape;  ///< -1 stands for the samples. Keys: [-1, slots]; others: [-1, columns]
  /// For keys: the maximum number of keys in each slot of a sample; the config decides which keys of a longer bag
  /// count.
  std::vector<int64_t> most_keys{};
};

/// The caller's memory for one input of a batch.
struct InputView {
  std::string_view name;
  const void* data = nullptr;           ///< dense: f32 [samples, columns]; keys: see `offsets`
  ElementType type = ElementType::f32;  ///< of `data`; keys: one of the others
  /// Dense values, and keys without offsets: elements between the starts of two samples; 0: contiguous.
  int64_t stride = 0;
  /// [samples * slots + 1]: slot s of sample b has the keys [offsets[b * slots + s], offsets[b * slots + s + 1]). Null:
  /// every slot has one key, data is [samples, slots].
  const void* offsets = nullptr;
  ElementType offsets_type = ElementType::i64;  ///< i32 or i64
  /// -1: memory of the host; else that GPU, which has to be the one of the model. Then there are no offsets: bags are
  /// in memory of the host.
  int gpu = -1;
  void* stream = nullptr;  ///< of a GPU: the cudaStream_t after whose queued work the data are there
};

/// The caller's memory for the scores of one output: f32 [samples, columns].
struct OutputView {
  std::string_view name;
  float* data = nullptr;
  int64_t stride = 0;      ///< elements from one sample to the next; 0: as many as a sample has
  int gpu = -1;            ///< as of InputView
  void* stream = nullptr;  ///< of a GPU: the cudaStream_t after whose queued work the memory is free to be written
};

struct EvaluationSummary;

struct LoadOptions {
  /// A run folder, a checkpoint, or a snapshot_prefix, with @<iteration> for one that is not the newest; or the file of
  /// a dense model.
  std::string model;
  std::filesystem::path config = {};      ///< empty: the one saved with the model
  std::vector<std::string> changes = {};  ///< fields of the config: "solver.mixed_precision=1024"
  DeviceChoice device = DeviceChoice::automatic;
  std::optional<int> threads = {};  ///< on a CPU, for each call of score(); none: all usable cores
  /// Maximum samples per batch; larger ones are split. Activations take memory in proportion.
  int64_t most_samples = 65536;
  std::function<void(std::string_view line)> note = {};  ///< receives warnings and notes; empty: they are dropped
  /// Uses the environment, and set_environment() when it loads the BLAS library.
  Surroundings surroundings = {};
  /// Where given, the rows are those of this view of a store, with its updates, and the model has no tables of its own:
  /// it reads no files of tables, and each call of score() looks its keys up, all in one state of the store. The view
  /// has every table of the model, by its name. On a CPU only.
  std::shared_ptr<const StoreView> tables = {};
};

/// Dense values are those that the first layers read, after the transforms of the config's dense columns. Keys are
/// the tables' keys: texts hashed, slot offsets added, as the reader makes them.
///
/// It holds weights and tables, but no gradients or optimizer states. Each concurrent call of score() has separate
/// memory for activations, which later calls reuse. On a CPU a sample gets the same score, bit for bit, alone and in a
/// batch of any size, with any number of threads; on a GPU only in batches of the same size, since GEMMs of other sizes
/// sum in other orders.
class HCTR_API Model {
 public:
  /// Loads a model. Errors: Error(io) if there is none; Error(config), Error(data) if its files do not fit;
  /// Error(device).
  explicit Model(const LoadOptions&);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // Describe the loaded model. Any thread.
  std::vector<ModelTensor> inputs() const;
  std::vector<ModelTensor> outputs() const;
  std::string name() const;  ///< "the final model of run 'runs/a', iteration 60"
  int64_t iteration() const;
  std::string device() const;

  /// Computes the scores of a batch, and returns when they are in the caller's memory. Requires every input once;
  /// unwanted outputs may be omitted. Any thread, any number concurrently. Errors: Error(usage) for a missing or
  /// unknown name, a type that does not fit, or decreasing offsets; Error(device). The memory of outputs is undefined
  /// then.
  void score(int64_t samples, std::span<const InputView> inputs, std::span<const OutputView> outputs) const;

  /// Rows of a source, in order: the scores of each output, [rows, columns]; NaN for a skipped bad record.
  using ScoredRows = std::function<void(int64_t rows, std::span<const OutputView> scores)>;
  /// Scores all samples of a source in the format of the model's config; needs no labels. A source is a file, a list, a
  /// folder, a pattern, or a table in memory. Any thread, any number concurrently. Errors: those of reading data;
  /// Error(device); whatever `rows` throws.
  void predict(const std::string& source, const ScoredRows& rows) const;
  /// Converts the samples of such a source to inputs for score(), in batches. `partial`: columns of slots may be
  /// missing; these slots then have no keys. Errors: those of reading data.
  using Encoded = std::function<void(int64_t samples, std::span<const InputView> inputs)>;
  void encode(const std::string& source, bool partial, const Encoded& samples) const;

  /// Computes the metrics of eval_metrics with the model that is loaded, on one rank; there they are those of
  /// hctr::evaluate(), bit for bit. `source`: samples with labels, as of predict(), all of them; empty: the eval_source
  /// of the config, as far as that says. `stop`: as JobOptions::stop. Values that match nothing are warnings, and in
  /// `matches`. Any thread; evaluations follow each other, and scores go on. Declared in hctr/use_model.h. Errors:
  /// those of reading data; Error(usage) without an eval_source; Error(device).
  EvaluationSummary evaluate(const std::string& source = {}, const std::atomic<int>* stop = nullptr) const;

  /// Loads another model and scores with it from then on; calls that run end with the one before, whose memory is then
  /// released. Any thread; several calls follow each other. Errors: those of the constructor, and Error(config) where
  /// inputs or outputs differ; the model stays as it is then.
  void replace(const LoadOptions&);

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
