// A data file of any format, open for inspection.
#pragma once

#include <functional>
#include <memory>

#include "prepare/inspect/inspect.h"

namespace hctr {

struct OpenData {
  InspectedFile file;
  std::shared_ptr<SampleSet> set;  ///< a set that contains only this file; null for Norm
  std::unique_ptr<Cutter> cutter;
  std::function<BadRecords(Chunk&, SampleBlock&)> parse;  ///< skips bad records; thread-safe
  RecordShape shape;
  std::function<bool(Chunk&)> find_records;  ///< see SampleSet
  bool counts_records = true;                ///< see SampleSet
};

/// The total size of the files of `path`, compressed or not, for progress; 0 if unknown.
int64_t bytes_to_read(const fs::path&, const InspectOptions&);

/// Opens a data file. Errors: those of the format if the header is invalid.
OpenData open_data(const fs::path&, const InspectOptions&);

}  // namespace hctr
