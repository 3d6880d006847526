// Evaluating a saved model, predicting with it, and exporting it.
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

/// Without a config that of the saved model is used, where it is kept with it.
struct ModelOptions : JobOptions {
  /// A run folder, a checkpoint, or a snapshot_prefix, with @<iteration> where it is not the newest.
  std::string model;
  std::string data;  ///< the samples, in the format of the config; empty: its eval_source
};

/// What was done with a saved model.
struct ModelUse {
  int rank = 0;  ///< the first rank of this process; the summary of rank 0 is complete
  std::string device;
  std::string model;      ///< which one it was, in words
  int64_t iteration = 0;  ///< finished updates of the model
  std::string data;
  double seconds = 0;
  int64_t skipped_records = 0;       ///< bad records that were left out
  std::vector<SlotMatches> matches;  ///< of evaluation and prediction: how many keys of each slot have rows
  bool interrupted = false;          ///< ended by JobOptions::stop; there is no result then
};

struct EvaluationSummary : ModelUse {
  int64_t samples = 0;
  std::map<std::string, double> metrics;         ///< by name
  std::map<std::string, std::string> undefined;  ///< of those that are NaN: why
  std::map<std::string, double> best_possible;   ///< as TrainSummary has them
};

/// Computes the metrics of eval_metrics as an evaluation during training does, on as many ranks as the config names.
/// Without `data` an evaluation is as long as the config says, else as long as the data. Trains nothing and writes no
/// file. Errors: Error of any kind, the first of any rank.
HCTR_API EvaluationSummary evaluate(const ModelOptions&);

struct PredictOptions : ModelOptions {
  std::string out;  ///< a file that ends in .tsv, .csv or .parquet; "-": `rows` gets a text
  /// For "-": gets the tab-separated text piece by piece, and at the end an empty piece. What it throws ends the work.
  std::function<void(std::string_view text)> rows{};
  std::vector<std::string> keep;  ///< columns of a text that are passed on
};

struct PredictionSummary : ModelUse {
  int64_t rows = 0;
};

/// Writes a line for each sample, in the order of the data: its number from 0 on, its labels where it has some, its
/// scores, and the columns to keep. The data need no labels. A file gets its name when it is complete. Errors: Error of
/// any kind, the first of any rank.
HCTR_API PredictionSummary predict(const PredictOptions&);

enum class ExportFormat { onnx, npz, safetensors, parquet };

struct ExportOptions : ModelOptions {
  ExportFormat format = ExportFormat::onnx;
  std::filesystem::path out;                      ///< a folder that is new, or empty
  int64_t rows = 0;                               ///< samples that rows.npz gets with their scores; of ONNX
  int64_t most_inline_bytes = int64_t{64} << 20;  ///< of an array in the ONNX file itself; larger ones get a file
};

struct ExportSummary : ModelUse {
  std::vector<std::filesystem::path> files;
  int64_t bytes = 0;  ///< of all files
  int64_t rows = 0;   ///< in rows.npz
};

/// Writes the weights and tables of a saved model to files of other programs (docs/export.md). Runs on one rank, and on
/// the CPU unless the options name a device. Files get their names when all are complete. Errors: Error of any kind;
/// Error(usage) when the folder holds something.
HCTR_API ExportSummary export_model(const ExportOptions&);

}  // namespace hctr
