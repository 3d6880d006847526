// One data file of any format, open for inspection.
#pragma once

#include <functional>
#include <memory>

#include "prepare/inspect/inspect.h"

namespace hctr {

struct OpenData {
  InspectedFile file;
  std::shared_ptr<SampleSet> set;  ///< of this file alone; null for Norm
  std::unique_ptr<Cutter> cutter;
  std::function<BadRecords(Chunk&, SampleBlock&)> parse;  ///< thread-safe; leaves bad records out
  RecordShape shape;
  std::function<bool(Chunk&)> find_records;  ///< as SampleSet has it
  bool counts_records = true;                ///< as SampleSet has it
};

/// Bytes behind the path, compressed or not, for progress; 0 where they are not known.
int64_t bytes_to_read(const fs::path&, const InspectOptions&);

/// Errors: those of the format for a header that makes no sense.
OpenData open_data(const fs::path&, const InspectOptions&);

}  // namespace hctr
