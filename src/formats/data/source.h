// Where the samples of a set are, and the width of their stored keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"
#include "formats/data/data_section.h"

namespace hctr {

/// The width of stored keys. detect: it is found in the files.
enum class KeyWidth { detect, u32, i64 };

/// The training or the evaluation samples of a section.
struct Source {
  std::string path;         ///< `source` or `eval_source`
  int64_t num_samples = 0;  ///< `num_samples` or `eval_num_samples`; 0: not stated
  /// Labels may be missing, as predictions need none: in rows, or as columns. They are read as kNoLabel.
  bool labels_optional = false;
  bool weight_optional = false;           ///< the column of weights may be missing: each sample counts once
  std::vector<bool> slots_optional = {};  ///< [slots of a record] whose column may be missing: they have no keys then
  std::vector<fs::path> files{};          ///< some of the files that `path` names, where only these are to be read
  std::vector<std::string> keep{};        ///< columns whose cells are passed on as texts
};
/// A missing label: any value below -0.5 means the same.
inline constexpr float kNoLabel = -1;

/// For followed data: the files that existed at the start.
inline Source training_source(const DataSection& section) {
  return {.path = section.source, .num_samples = section.num_samples, .files = section.first_files};
}
/// Weights may be missing: they change the average loss alone.
inline Source evaluation_source(const DataSection& section) {
  return {.path = section.eval_source, .num_samples = section.eval_num_samples, .weight_optional = true};
}

/// The value of label `index` if its column is missing. None: the column must exist.
inline std::optional<float> label_without_column(const DataSection& section, const Source& source, size_t index) {
  const bool is_weight = section.sample_weight.given && static_cast<int64_t>(index) == section.labels();
  if (is_weight) return source.labels_optional || source.weight_optional ? std::optional(1.0f) : std::nullopt;
  return source.labels_optional ? std::optional(kNoLabel) : std::nullopt;
}

/// Reports that samples are not weighted. `column`: the missing one; empty: none is.
void note_missing_weight(const std::string& column, const fs::path& file, const Log&);
/// Errors: Error(data): one file of a set has weights, and another has none.
[[noreturn]] void fail_mixed_weights(const fs::path& first, const fs::path& other);

}  // namespace hctr
