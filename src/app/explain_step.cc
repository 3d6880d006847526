#include "app/explain_step.h"

#include "core/base/expect.h"
#include "infer/load_config.h"
#include "program/terminal.h"
#include "train/step_explain.h"

namespace hctr {
namespace {

/// The properties of this machine's GPU; without a GPU, those of an H200.
GpuTraits gpu_to_plan_for() { return find_gpus().count > 0 ? *gpu_traits(Device{DeviceKind::cuda, 0}) : GpuTraits{}; }

}  // namespace

std::string explain_step_of(const std::string& config, const JobOptions& options) {
  if (config.empty()) throw Error(Kind::usage, "--explain step needs a config: huge_ctr --explain step FILE.json");
  const Log log([](Level level, std::string_view line) {
    print_note(level == Level::warning ? cat("warning: ", line, "\n") : cat(line, "\n"));
  });
  const Config read = load_config(config, options.strict, log,
                                  {.changes = options.changes, .environment = options.surroundings.environment});
  return explain_step(read, options.device == DeviceChoice::cpu ? std::nullopt : std::optional(gpu_to_plan_for()));
}

}  // namespace hctr
