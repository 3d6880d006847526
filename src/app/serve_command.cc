#include "app/serve_command.h"

#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "app/stop_signals.h"
#include "core/base/expect.h"
#include "core/base/log.h"
#include "program/terminal.h"
#include "serve/served_parity.h"
#include "serve/service.h"

namespace hctr {

ServeCommand::ServeCommand(CommandLine& app) {
  app.add_option("--model-control", control_,
                 "none: load all models at the start; poll: also load models that are new or change later; "
                 "explicit: load only models that --load-model or a client names")
      .one_of({"none", "poll", "explicit"})
      .show_default();
  app.add_option("--load-model", load_, "With --model-control explicit: a model to load at the start; *: all models")
      .type_name("NAME");
  app.add_option("--poll-seconds", poll_seconds_, "With --model-control poll: seconds between two checks of the files")
      .positive_number()
      .show_default();
  app.add_option("--address", address_, "Address to listen at; 0.0.0.0: all interfaces, for other machines")
      .show_default();
  app.add_option("--http-port", http_port_, "Port for HTTP; 0: any free port").range(0, 65535).show_default();
  app.add_option("--grpc-port", grpc_port_, "Port for gRPC; 0: any free port; -1: no gRPC")
      .range(-1, 65535)
      .show_default();
  app.add_option("--metrics-port", metrics_port_, "Port for Prometheus metrics; 0: any free port; -1: no metrics")
      .range(-1, 65535)
      .show_default();
  app.add_option("--http-threads", http_threads_, "Threads that read requests and write answers")
      .range(1, 256)
      .show_default();
  app.add_option("--instances", instances_,
                 "Batches of a model that are scored concurrently; default: number of "
                 "cores, at most 4")
      .range(1, 1024);
  app.add_option("--max-batch", max_batch_, "Largest number of samples in a batch").positive().show_default();
  app.add_option("--batch-delay", batch_delay_,
                 "Microseconds that a request waits for further requests in its "
                 "batch")
      .range(0, 60'000'000)
      .show_default();
  app.add_option("--max-queue", max_queue_,
                 "Maximum number of waiting requests of a model; further requests are "
                 "answered with 503")
      .positive()
      .show_default();
  app.add_option("--queue-timeout", queue_timeout_,
                 "Microseconds that a request without its own timeout may wait; 0: no limit")
      .non_negative()
      .show_default();
  app.add_option("--max-body", max_body_, "Maximum size of a request in MiB; larger requests are refused unread")
      .range(1, 2047)
      .show_default();
  app.add_option("--max-connections", max_connections_,
                 "Maximum number of open HTTP connections, and of open gRPC connections")
      .positive()
      .show_default();
  app.add_option("--exit-timeout", exit_timeout_, "Seconds that running requests may take when the service ends")
      .positive_number()
      .show_default();
  app.add_option("--store", store_,
                 "A store.json or ps.json: models whose names the store contains read their tables from the store, "
                 "including its updates while the service runs")
      .type_name("FILE");
  app.add_flag("--verify", verify_,
               "Send the evaluation samples of each model's config to the service, compare the answers with the "
               "scores of predict, and exit: code 0 if all scores are equal, 4 if some differ");
  app.add_flag("--shared-memory", shared_memory_, "Let clients of this machine pass tensors in shared memory");
  app.add_flag("--cuda-shared-memory", cuda_shared_memory_,
               "Let clients of this machine pass tensors in GPU memory (CUDA IPC); trusted clients only: a client that "
               "frees such memory too early can make the GPU unusable for the service");
}

namespace {

/// Compares the service's scores of each model with offline scores, and prints the result. Returns the exit code.
int verify_models(const serve::Service& service) {
  int code = 0;
  for (const std::string& model : service.core().repository().models()) {
    const serve::Parity parity = serve::compare_with_offline(service, model);
    print(cat("model '", model, "': ", parity.samples, " samples in ", parity.requests, " requests, "));
    print(parity.different == 0 ? std::string("all scores equal the scores of predict bit for bit\n")
                                : cat(parity.different, " scores differ, by at most ", parity.largest, "\n"));
    if (parity.different > 0) code = exit_code(Kind::data);
  }
  return code;
}

/// Raises the limit of file descriptors to its maximum. Each connection takes a descriptor, and the default limit,
/// 1,024, equals the default of --max-connections.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int ServeCommand::run(const std::vector<std::string>& sources, const TrainOptions& with) {
  using std::chrono::milliseconds;
  serve::ServeOptions options;
  options.sources = sources;
  options.control = control_ == "poll"       ? serve::ModelControl::poll
                    : control_ == "explicit" ? serve::ModelControl::on_request
                                             : serve::ModelControl::none;
  if (!load_.empty() && options.control != serve::ModelControl::on_request)
    throw Error(Kind::usage, "--load-model requires --model-control explicit");
  options.load = load_;
  options.poll_time = milliseconds(static_cast<int64_t>(poll_seconds_ * 1000));
  options.address = address_;
  options.http_port = http_port_;
  options.grpc_port = grpc_port_;
  options.metrics_port = metrics_port_;
  if (verify_) {  // with --verify, only this process sends requests
    options.http_port = 0;
    options.grpc_port = options.metrics_port = -1;
    options.address = "127.0.0.1";
  }
  options.http_threads = http_threads_;
  options.limits.body_bytes = max_body_ << 20;
  options.limits.connections = max_connections_;
  options.drain_time = milliseconds(static_cast<int64_t>(exit_timeout_ * 1000));
  options.shared_memory = shared_memory_;
  options.cuda_shared_memory = cuda_shared_memory_;
  options.store = store_;
  options.device = with.device;
  options.threads = with.threads;
  options.instances = instances_;
  options.schedule.most_samples = max_batch_;
  options.schedule.most_queued = max_queue_;
  options.schedule.delay = std::chrono::microseconds(batch_delay_);
  options.schedule.timeout = std::chrono::microseconds(queue_timeout_);
  options.surroundings = with.surroundings;
  const std::atomic<int>& stop = catch_stop_signals("Answering the remaining requests");
  const Log log(options.surroundings.log);
  raise_descriptor_limit();
  serve::Service service(options);
  if (verify_) return verify_models(service);
  log.info("ready");
  while (stop == 0) std::this_thread::sleep_for(milliseconds(50));
  if (!service.drain()) log.warning("some requests were not answered within --exit-timeout");
  return 0;
}

}  // namespace hctr
