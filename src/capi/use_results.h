// What uses of a model have in common: the handle that stops them, and their summary.
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

/// Errors: Error(interrupted) where there is no result.
template <class Use>
Use whole(Use use) {
  if (use.interrupted) throw Error(Kind::interrupted, "stopped before the work was complete");
  return use;
}

/// `to`: NULL, or gets it.
inline void note_use(const ModelUse& use, int64_t samples, hctr_use_summary* to) {
  if (!to) return;
  const hctr_use_summary summary{sizeof summary, use.iteration, samples, use.skipped_records, use.seconds};
  write_struct(summary, to, "hctr_use_summary");
}

/// Passes on metrics by name. `metric`: NULL: nobody gets them.
inline void pass_metrics(const std::map<std::string, double>& metrics, hctr_metric metric, void* user) {
  for (const auto& [name, value] : metrics)
    if (metric) metric(user, name.c_str(), value);
}

}  // namespace hctr::capi
