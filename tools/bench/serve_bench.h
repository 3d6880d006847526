// The speed of a service that speaks KServe's v2 protocol: huge_ctr serve, Triton, or another one.
#pragma once

#include <cstdint>
#include <string>

#include "bench_report.h"

namespace hctr::bench {

struct ServeCase {
  std::string address = "127.0.0.1:8000";
  std::string model;
  bool grpc = false;        ///< `address` is that of gRPC
  int64_t samples = 1;      ///< of a request
  int clients = 4;          ///< connections; closed loop: each asks again when it is answered
  double rate = 0;          ///< open loop: requests a second in all, at random times (Poisson); 0: closed loop
  double seconds = 5;       ///< to measure for, after a fifth of it that does not count
  int64_t most_key = 1000;  ///< integers are below
};

/// Times from when a request was due to its answer: 50, 90, 99 and 99.9 of 100, and requests and samples a second. In
/// an open loop a late answer does not delay what is due: the wait counts. Inputs are made up as the model's metadata
/// say. Errors: Error(io) where the service does not answer, Error(data) where it refuses.
void bench_serve(const ServeCase&, Report&);

}  // namespace hctr::bench
