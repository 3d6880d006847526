// Names of layers in messages and profiles.
#pragma once

#include <string>
#include <string_view>

#include "core/base/expect.h"
#include "core/device/profiler.h"
#include "net/graph/graph.h"

namespace hctr {

/// The layer's name and type, for messages.
inline std::string label_of(const Node& node) {
  return cat("layer '", node.entry->tops[0], "' (", node.entry->type->name(), ")");
}

/// Profiles the layer's work as `part` while the returned object exists. Calls `bytes` only while profiling.
template <class Bytes>
ProfiledPart part_of(const Node& node, Context& ctx, std::string_view part, const Bytes& bytes) {
  return {ctx, part, node.entry->type->name(), node.entry->tops[0],
          ctx.runtime().profiler() ? Work{.bytes = bytes()} : Work{}};
}

}  // namespace hctr
