// run.json: the inputs and environment of a run, so that the run can be understood and repeated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"
#include "formats/reader/reader.h"
#include "hctr/solver.h"

namespace hctr {

/// The version of NVIDIA's kernel driver; empty if there is none.
std::string driver_version();
/// Parses the version in the first line of the driver's file. Returns the whole line if it contains no version.
std::string driver_version_in(const std::string& line);
/// The number of files, their bytes and a hash of the sizes, as in manifests and checkpoints.
Json to_json(const DataFingerprint&);

/// Describes the start of a process that begins or resumes a run: command line, folder, config, host, process, start
/// time, device, ranks, threads, processor, cores, memory, driver and versions.
Json about_start(const TrainOptions&, const std::string& device, int ranks, int threads);

/// Limits the starts in run.json, because a run that is stopped every hour has thousands of starts.
inline constexpr size_t kMostStarts = 100;
inline constexpr const char* kStartsLeftOut = "starts_left_out";
/// The contents of run.json: "schema", "run", "data", "eval_data" if any, and "starts", an array of about_start(). The
/// array has the first start and the latest starts, kMostStarts in total; "starts_left_out" is the number of omitted
/// starts. `before`: the file of the resumed run, or null.
Json about_run_file(const std::string& run, const Json& data, const Json& eval_data, const Json& start,
                    const Json* before);
/// Parses "unasked_models" of the file (RunFolder::unasked_models()).
std::vector<int64_t> unasked_models_in(const Json& file);
Json with_unasked_models(const Json& file, const std::vector<int64_t>& iterations);
/// The contents of run.json once the process of the last entry in "starts" has ended: adds "ended" and "how"
/// ("finished", "stopped") to that entry.
Json with_end(const Json& file, const std::string& how);

}  // namespace hctr
