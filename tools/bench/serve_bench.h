// Measures the speed of a KServe v2 service: huge_ctr serve, Triton, or another one.
#pragma once

#include <cstdint>
#include <string>

#include "bench_report.h"

namespace hctr::bench {

struct ServeCase {
  std::string address = "127.0.0.1:8000";
  std::string model;
  bool grpc = false;           ///< `address` is a gRPC address
  int64_t samples = 1;         ///< samples per request
  int clients = 4;             ///< number of connections; in a closed loop each sends its next request after the answer
  double rate = 0;             ///< open loop: total requests per second, at random times (Poisson); 0: closed loop
  double seconds = 5;          ///< measuring time, after a warm-up of a fifth of this time
  int64_t most_key = 1000;     ///< random integers are below this number
  int64_t slot_keys = 0;       ///< > 0: the key in column s is random in [s * slot_keys, (s + 1) * slot_keys)
  double alpha = 0;            ///< exponent of the power law of the integers; 0: uniform
  int64_t requests = 0;        ///< number of requests with different values, which clients repeat; 0: up to 16
  bool shared_memory = false;  ///< pass tensors in system shared memory; needs HTTP, and a service that allows it
};

/// Reports the time from a request's due time to its answer (percentiles 50, 90, 99, 99.9), and requests and samples
/// per second. In an open loop, due times do not depend on answers. If a request is sent later than it is due, the
/// delay counts as part of its time. Inputs are random, with the shapes of the model's metadata. Errors: Error(io) if
/// the service does not answer, Error(data) if it refuses a request.
void bench_serve(const ServeCase&, Report&);

}  // namespace hctr::bench
