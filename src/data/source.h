// Where the samples of a set are, and how wide its keys are stored.
#pragma once

#include <cstdint>
#include <string>

#include "data/data_section.h"

namespace hctr {

/// The width of stored keys; detect: the files tell.
enum class KeyWidth { detect, u32, i64 };

/// Which samples of a section are wanted.
struct Source {
  std::string path;         ///< as `source` or `eval_source` has it
  int64_t num_samples = 0;  ///< as stated beside it; 0: not stated
};
inline Source training_source(const DataSection& section) { return {section.source, section.num_samples}; }
inline Source evaluation_source(const DataSection& section) { return {section.eval_source, section.eval_num_samples}; }

}  // namespace hctr
