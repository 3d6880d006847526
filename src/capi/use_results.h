// Shared by the C functions that use a saved model: the stop handle, and summaries.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "capi/call.h"
#include "core/base/expect.h"
#include "hctr/huge_ctr.h"
#include "hctr/use_model.h"

struct hctr_stop {
  std::atomic<int> value = 0;
};

namespace hctr::capi {

/// Throws Error(interrupted) if the caller stopped this use of the model.
template <class Use>
Use whole(Use use) {
  if (use.interrupted) throw Error(Kind::interrupted, "stopped before the work was complete");
  return use;
}

/// Copies a summary to `to`, which may be NULL.
inline void note_use(const ModelUse& use, int64_t samples, hctr_use_summary* to) {
  if (!to) return;
  const hctr_use_summary summary{sizeof summary, use.iteration, samples, use.skipped_records, use.seconds};
  write_struct(summary, to, "hctr_use_summary");
}

/// Calls `metric` for each metric; NULL: does nothing.
inline void pass_metrics(const std::map<std::string, double>& metrics, hctr_metric metric, void* user) {
  for (const auto& [name, value] : metrics)
    if (metric) metric(user, name.c_str(), value);
}

}  // namespace hctr::capi
