// The source of a set's samples and the width of its stored keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"
#include "formats/data/data_section.h"

namespace hctr {

/// The width of stored keys. detect: derived from the files.
enum class KeyWidth { detect, u32, i64 };

/// The source of the training or evaluation samples of a section.
struct Source {
  std::string path;         ///< `source` or `eval_source`
  int64_t num_samples = 0;  ///< `num_samples` or `eval_num_samples`; 0: not stated
  /// Allows missing labels: single values and whole columns. Used for predictions. A missing label is read as kNoLabel.
  bool labels_optional = false;
  bool weight_optional = false;           ///< allows a missing weight column; every weight is then 1
  std::vector<bool> slots_optional = {};  ///< [slots] allows a missing column; the slot then has no keys
  std::vector<fs::path> files{};          ///< if not empty: the subset of the files of `path` to read
  std::vector<std::string> keep{};        ///< columns whose cells are returned as text in SampleBlock::kept
};
/// Marks a missing label. Any value below -0.5 is treated as missing.
inline constexpr float kNoLabel = -1;

/// The training source. For followed data, it contains only the files that existed at the start.
inline Source training_source(const DataSection& section) {
  return {.path = section.source, .num_samples = section.num_samples, .files = section.first_files};
}
/// The evaluation source. Sample weights are optional, because they only change the average loss.
inline Source evaluation_source(const DataSection& section) {
  return {.path = section.eval_source, .num_samples = section.eval_num_samples, .weight_optional = true};
}

/// The value of label `index` if its column is missing; empty if the column is required.
inline std::optional<float> label_without_column(const DataSection& section, const Source& source, size_t index) {
  const bool is_weight = section.sample_weight.given && static_cast<int64_t>(index) == section.labels();
  if (is_weight) return source.labels_optional || source.weight_optional ? std::optional(1.0f) : std::nullopt;
  return source.labels_optional ? std::optional(kNoLabel) : std::nullopt;
}

/// Logs that samples are not weighted because `column` is missing. Does nothing if `column` is empty.
void note_missing_weight(const std::string& column, const fs::path& file, const Log&);
/// Throws Error(data), which says that one file of a set has weights and another has none.
[[noreturn]] void fail_mixed_weights(const fs::path& first, const fs::path& other);

}  // namespace hctr
