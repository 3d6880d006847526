// Converts the options of an EmbeddingSet to the engine's types.
#pragma once

#include <memory>

#include "core/device/allocator.h"
#include "core/device/context.h"
#include "engine/spec/table_spec.h"
#include "hctr/embedding.h"
#include "ops/embedding/bag_pool.h"

namespace hctr {

/// Errors: Error(usage) naming the table, the option and its valid values.
ops::Optimizer rule_of(const EmbeddingTableOptions&);
/// Returns the spec of a table with `features` features, without batch sizes. Errors: those of rule_of().
TableSpec spec_of(const EmbeddingTableOptions&, int64_t features);

ops::BagPooling pooling_of(Pooling);
/// Errors: Error(device) if the GPU does not exist.
Device device_of(const EmbeddingOptions&);
RuntimeOptions runtime_options(const EmbeddingOptions&);
/// Returns null if the driver allocates. Errors: Error(usage) if only one of `allocate` and `free` is set.
std::shared_ptr<DeviceAllocator> allocator_of(const EmbeddingOptions&);
/// Whether the table's rows can come from the caller's allocator. Requires that the number of rows is fixed from the
/// start, and that the rows stay on the device.
bool rows_from_allocator(const EmbeddingOptions&, const EmbeddingTableOptions&);

}  // namespace hctr
