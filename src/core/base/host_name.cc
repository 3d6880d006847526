#include "core/base/host_name.h"

#include <unistd.h>

#include <cstdlib>

namespace hctr {

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "unknown host";
}

std::string host_id() {
  const char* id = std::getenv("NCCL_HOSTID");
  return id && *id ? id : host_name();
}

}  // namespace hctr
