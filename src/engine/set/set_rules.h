// What an EmbeddingSet is asked for, in the engine's terms.
#pragma once

#include <memory>

#include "core/device/allocator.h"
#include "core/device/context.h"
#include "engine/spec/table_spec.h"
#include "hctr/embedding.h"
#include "ops/embedding/bag_pool.h"

namespace hctr {

/// Errors: Error(usage) naming table, option and what it may be.
ops::Optimizer rule_of(const EmbeddingTableOptions&);
/// The spec of a table, but for the sizes of batches, with so many features. Errors: likewise.
TableSpec spec_of(const EmbeddingTableOptions&, int64_t features);

ops::BagPooling pooling_of(Pooling);
/// Errors: Error(device) where there is no such GPU.
Device device_of(const EmbeddingOptions&);
RuntimeOptions runtime_options(const EmbeddingOptions&);
/// Null: the driver gives the memory. Errors: Error(usage) for half an allocator.
std::shared_ptr<DeviceAllocator> allocator_of(const EmbeddingOptions&);
/// Whether the rows of the table have a size from the start, and stay on the device.
bool rows_from_allocator(const EmbeddingOptions&, const EmbeddingTableOptions&);

}  // namespace hctr
