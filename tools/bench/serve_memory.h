// System shared memory for the tensors of bench serve.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/http_connection.h"

namespace hctr::bench {

/// A region of shared memory that is registered with a service of this machine.
class RequestMemory {
 public:
  /// `address`: HOST:PORT of the service's HTTP port. Errors: Error(io) if the memory cannot be allocated, Error(data)
  /// if the service refuses the region.
  RequestMemory(const std::string& address, int64_t bytes);
  ~RequestMemory();
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  /// Copies `data` into the region, and returns the tensor parameters for these bytes: a JSON object.
  std::string add(std::string_view data);
  /// Reserves the next `bytes` of the region for an output, and returns the tensor parameters for them.
  std::string reserve(int64_t bytes);

 private:
  serve::HttpConnection control_;
  std::string name_;
  int64_t bytes_, used_ = 0;
  int file_ = -1;
};

}  // namespace hctr::bench
