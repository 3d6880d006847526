// Evaluates a saved model, predicts with it, and exports it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/solver.h"
#include "hctr/unmatched_keys.h"

namespace hctr {

/// If JobOptions::config is empty, the config saved with the model is used.
struct ModelOptions : JobOptions {
  /// A run folder, a checkpoint, or a snapshot_prefix; `@<iteration>` appended selects an older model.
  std::string model;
  std::string data;  ///< the samples, in the config's format; empty: the config's eval_source
};

/// The result of using a saved model.
struct ModelUse {
  int rank = 0;  ///< the first rank of this process; only rank 0's summary is complete
  std::string device;
  std::string model;      ///< describes the model that was used
  int64_t iteration = 0;  ///< number of training steps of the model
  std::string data;
  double seconds = 0;
  int64_t skipped_records = 0;       ///< skipped bad records
  std::vector<SlotMatches> matches;  ///< evaluation and prediction: how many keys of each slot have rows
  bool interrupted = false;          ///< stopped by JobOptions::stop; there is no result
};

struct EvaluationSummary : ModelUse {
  int64_t samples = 0;
  std::map<std::string, double> metrics;         ///< by name
  std::map<std::string, std::string> undefined;  ///< the reason for each NaN metric
  std::map<std::string, double> best_possible;   ///< as in TrainSummary
};

/// Computes the metrics of eval_metrics like an evaluation during training, on the ranks that the config names.
/// Evaluates all samples of `data`; without `data`, as many samples as the config says. Writes no file. Errors: Error
/// of any kind; if several ranks fail, the first error.
HCTR_API EvaluationSummary evaluate(const ModelOptions&);

struct PredictOptions : ModelOptions {
  std::string out;  ///< a file that ends in .tsv, .csv or .parquet; "-": `rows` receives text
  /// For "-", receives the tab-separated text in pieces, then an empty piece at the end. An exception ends the work.
  std::function<void(std::string_view text)> rows{};
  std::vector<std::string> keep;  ///< columns of a text source to copy to the output
};

struct PredictionSummary : ModelUse {
  int64_t rows = 0;
};

/// Writes a line for each sample, in the order of the data: the sample's number, starting at 0, its labels if any, its
/// scores, and the columns to keep. The data need no labels. The file is renamed into place when complete. Errors:
/// Error of any kind; if several ranks fail, the first error.
HCTR_API PredictionSummary predict(const PredictOptions&);

enum class ExportFormat { onnx, npz, safetensors, parquet };

struct ExportOptions : ModelOptions {
  ExportFormat format = ExportFormat::onnx;
  std::filesystem::path out;  ///< a new or empty folder
  int64_t rows = 0;           ///< ONNX: number of samples to write to rows.npz with their scores
  /// Maximum size in bytes of an array inside the ONNX file; larger arrays get a file of their own.
  int64_t most_inline_bytes = int64_t{64} << 20;
};

struct ExportSummary : ModelUse {
  std::vector<std::filesystem::path> files;
  int64_t bytes = 0;  ///< total size of the files
  int64_t rows = 0;   ///< number of rows in rows.npz
};

/// Exports the weights and tables of a saved model for other programs (docs/export.md). Runs on one rank, and on the
/// CPU unless the options name a device. Files are renamed into place when all are complete. Errors: Error of any kind;
/// Error(usage) if the folder is not empty.
HCTR_API ExportSummary export_model(const ExportOptions&);

}  // namespace hctr
