// The table of data formats: for each its word in a config, what a Data layer must say for it, and how a set of it is
// opened.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/data_section.h"
#include "data/sample_set.h"
#include "data/source.h"

namespace hctr {

struct FormatType {
  DataFormat format;
  std::vector<std::string> words;  ///< the first is its name, the others mean the same
  std::string source_text;         ///< what `source` names, for messages: "the path of a file list"
  /// Rules of a section of this format, beyond those of all.
  void (*check)(const DataSection&, const std::string& pointer, Problems&);
  /// Errors: Error(io), Error(data) for files that are not there or not as the section says.
  std::unique_ptr<SampleSet> (*open)(const DataSection&, const Source&, KeyWidth, const Log&);
};

/// Every format, in the order of the manual.
const std::vector<FormatType>& format_types();
const FormatType& format_type(DataFormat);

}  // namespace hctr
