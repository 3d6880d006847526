#include "launch/start.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/current_error.h"
#include "core/base/thread_pool.h"
#include "launch/attempt.h"
#include "ops/gemm/blas.h"

namespace hctr {
namespace {

std::chrono::seconds time_limit(const JobOptions& options) { return std::chrono::seconds(options.comm_timeout); }

int threads_here(const Processes* others, size_t ranks) {
  const int processes = others ? others->on_host().value_or(Processes::OnHost{}).count : 1;
  const auto all = static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF));
  return threads_of_rank(usable_cores(), all, processes, static_cast<int>(ranks));
}

}  // namespace

int threads_of_rank(int usable, int all, int processes, int ranks) {
  return std::max(1, std::min(usable, all / std::max(processes, 1)) / ranks);
}

Log errors_only(const Log& log) {
  return Log([log](Level level, std::string_view line) {
    if (level == Level::error) log.error(line);
  });
}

std::unique_ptr<Processes> join_processes(const JobOptions& options) {
  JoinLimits limits{.step = time_limit(options),
                    .join = std::chrono::seconds(options.join_timeout),
                    .silence = std::chrono::seconds(options.peer_timeout),
                    .over_tcp = options.attempt != nullptr};
  if (options.attempt) limits.agreed = options.attempt->secret;
  if (options.attempt && options.attempt->number > 0) limits.lost = std::chrono::seconds(options.restart_wait);
  std::unique_ptr<Processes> others = started_processes(limits, options.surroundings);
  if (options.attempt) options.attempt->joined = true;
  return others;
}

void or_end_job(const JobOptions& options, Processes* others, const std::function<void()>& body) {
  if (!others) return body();
  try {
    body();
  } catch (...) {
    end_job(*others, current_error(), options.surroundings);
    throw;
  }
}

void run_in_processes(const JobOptions& options, const std::function<void(Processes*)>& body) {
  const auto others = join_processes(options);
  or_end_job(options, others.get(), [&] {
    if (options.config == "-" && place_of(others.get()).processes > 1)
      throw Error(Kind::usage, "several processes cannot read the config from the standard input; name a file");
    body(others.get());
  });
}

Ranks::Ranks(const JobOptions& options, const Config& config, Processes* others, const Log& log, std::string doing)
    : devices(choose_devices(options.device, config.solver.gpu, launched_place_of(others),
                             place_of(others).process == 0 ? log : errors_only(log))),
      threads(options.threads.value_or(threads_here(others, devices.size()))),
      job(devices, others, time_limit(options), log, std::move(doing), options.surroundings) {
  const auto on_cpu = [](Device device) { return !device.is_cuda(); };
  if (std::any_of(devices.begin(), devices.end(), on_cpu)) ops::load_blas(options.surroundings);
  const ProcessPlace place = place_of(others);
  if (job.ranks() > 1 && place.process == 0)
    log.info(job.ranks(), " ranks in ", place.processes, place.processes == 1 ? " process." : " processes.");
}

}  // namespace hctr
