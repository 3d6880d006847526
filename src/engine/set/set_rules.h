// Converts the options of an EmbeddingSet to the engine's types.
#pragma once

#include <memory>

#include "core/device/allocator.h"
#include "core/device/context.h"
#include "engine/spec/table_spec.h"
#include "hctr/embedding.h"
#include "ops/embedding/bag_pool.h"

namespace hctr {

/// Errors: Error(usage) naming table, option and its valid values.
ops::Optimizer rule_of(const EmbeddingTableOptions&);
/// The spec of a table with this many features, without batch sizes. Errors: likewise.
TableSpec spec_of(const EmbeddingTableOptions&, int64_t features);

ops::BagPooling pooling_of(Pooling);
/// Errors: Error(device) if there is no such GPU.
Device device_of(const EmbeddingOptions&);
RuntimeOptions runtime_options(const EmbeddingOptions&);
/// Null: the driver allocates. Errors: Error(usage) if only one of allocate and free is given.
std::shared_ptr<DeviceAllocator> allocator_of(const EmbeddingOptions&);
/// Whether the rows of the table have a fixed size from the start, and stay on the device.
bool rows_from_allocator(const EmbeddingOptions&, const EmbeddingTableOptions&);

}  // namespace hctr
