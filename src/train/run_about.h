// run.json: the inputs and environment of a run, so that it can be understood and repeated later.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"
#include "formats/reader/reader.h"
#include "hctr/solver.h"

namespace hctr {

/// The version of NVIDIA's kernel driver; empty without one.
std::string driver_version();
/// The version in the first line of the driver's file; the whole line if it contains none.
std::string driver_version_in(const std::string& line);
/// Files, bytes and a hash of the sizes, as in manifests and checkpoints.
Json to_json(const DataFingerprint&);

/// The start of a process that begins or resumes a run: command line, folder, config, host, process, start, device,
/// ranks, threads, processor, cores, memory, driver and versions.
Json about_start(const TrainOptions&, const std::string& device, int ranks, int threads);

/// A run that is stopped every hour has thousands of starts.
inline constexpr size_t kMostStarts = 100;
inline constexpr const char* kStartsLeftOut = "starts_left_out";
/// The file: "schema", "run", "data", "eval_data" if any, and "starts", an array of about_start(): the first and the
/// latest, kMostStarts in total, with the number of omitted ones in "starts_left_out". `before`: the file of a resumed
/// run, or null.
Json about_run_file(const std::string& run, const Json& data, const Json& eval_data, const Json& start,
                    const Json* before);
/// "unasked_models" of the file: RunFolder::unasked_models().
std::vector<int64_t> unasked_models_in(const Json& file);
Json with_unasked_models(const Json& file, const std::vector<int64_t>& iterations);
/// The same file after the process of the last start ends: adds "ended" and "how" ("finished", "stopped").
Json with_end(const Json& file, const std::string& how);

}  // namespace hctr
