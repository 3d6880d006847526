#include "net/layers/layer_type.h"

#include "core/base/expect.h"

namespace hctr {

std::string Arity::text() const {
  if (least == most) return cat(least);
  if (most == kAnyNumber) return cat(least, " or more");
  return cat(least, " to ", most);
}

}  // namespace hctr
