#include "core/base/log.h"

namespace hctr {

void Log::write(Level level, std::string_view line) const {
  if (!output_->sink) return;
  const std::lock_guard lock(output_->mutex);
  output_->sink(level, line);
}

}  // namespace hctr
