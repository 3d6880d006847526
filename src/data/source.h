// Where the samples of a set are, and the width of their stored keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/data_section.h"

namespace hctr {

/// The width of stored keys. detect: it is found in the files.
enum class KeyWidth { detect, u32, i64 };

/// The training or the evaluation samples of a section.
struct Source {
  std::string path;         ///< `source` or `eval_source`
  int64_t num_samples = 0;  ///< `num_samples` or `eval_num_samples`; 0: not stated
  /// Labels may be missing, as predictions need none: in rows, or as columns. They are read as kNoLabel.
  bool labels_optional = false;
  std::vector<fs::path> files{};    ///< some of the files that `path` names, where only these are to be read
  std::vector<std::string> keep{};  ///< columns whose cells are passed on as texts
};
/// A missing label: any value below -0.5 means the same.
inline constexpr float kNoLabel = -1;

/// Of data that are followed: those that were there when it began.
inline Source training_source(const DataSection& section) {
  return {.path = section.source, .num_samples = section.num_samples, .files = section.first_files};
}
inline Source evaluation_source(const DataSection& section) { return {section.eval_source, section.eval_num_samples}; }

}  // namespace hctr
