// Tables with rows on a device, in host memory and on disk.
#pragma once

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"
#include "unit/engine/table/table_rig.h"

namespace hctr::test {

using DiskRule = ops::Optimizer::Kind;

inline TableSpec disk_spec() {
  TableSpec spec = small_spec(128, 3, 128, 128 * 3 * 3);
  spec.optimizer.kind = DiskRule::adam;
  return spec;
}

/// Tables whose rows move between device and host in every step.
class DiskTiers : public OnDevice {
 protected:
  TableSpec spec(DiskRule rule = DiskRule::adam) const {
    TableSpec spec = disk_spec();
    spec.optimizer.kind = rule;
    // wide rows on a GPU, because its granules are large
    spec.dim = (GetParam().is_cuda() ? 3072 : 192) / (1 + spec.optimizer.states());
    return spec;
  }
  RowMemoryLimits limits(const TableSpec& spec) const {
    const auto granule = static_cast<int64_t>(ReservedBuffer(GetParam(), 1).granularity());
    const bool large = GetParam().is_cuda();  // on a GPU, one granule of each column has hundreds of rows
    const int64_t columns = 1 + spec.optimizer.states(), granules = (large ? 4 : 2) * columns * granule;
    RowMemoryLimits limits{.host = int64_t{1} << 40,
                           .move_every = 1,
                           .swap_always = true,
                           .device_setting = "\"gpu\"",
                           .host_setting = "\"host\"",
                           .disk_folder = folder_.path().string(),
                           .disk = int64_t{1} << 32};
    const int64_t few = large ? columns * granule + granule / 2
                              : granules + 4 * granule + spec.key_capacity / 4 * number_bytes_of_row(spec);
    limits.device = least_device(GetParam(), spec, limits) + few;
    limits.host = least_host(GetParam(), spec, limits) + granules + (3 << 19);
    // `device` is computed again, because the device minimum depends on the host limit, which is now smaller
    limits.device = least_device(GetParam(), spec, limits) + few;
    return limits;
  }
  void expect_all_tiers(TableRig& rig) {
    EXPECT_GT(rig.table->host_rows().rows, 0);
    EXPECT_GT(rig.table->host_rows().moved, 0);
    EXPECT_GT(rig.table->disk_use().rows, 0);
    EXPECT_GT(rig.table->disk_use().brought, 0);
    EXPECT_GE(rig.table->disk_use().needed, rig.table->disk_use().brought);
  }
  TemporaryFolder folder_;
};

}  // namespace hctr::test
