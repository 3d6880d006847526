#include "core/base/host_name.h"

#include <unistd.h>

#include "core/base/environment.h"

namespace hctr {

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "unknown host";
}

std::string host_id(const Environment& environment) {
  const std::optional<std::string> id = variable_of(environment, "NCCL_HOSTID");
  return id && !id->empty() ? *id : host_name();
}

}  // namespace hctr
