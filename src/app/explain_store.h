// What `huge_ctr --explain` says of store.json.
#pragma once

#include "config/sections/config_manual.h"

namespace hctr {

/// "store": its fields; "store_schema": docs/store.schema.json.
ManualEntries store_entries();

}  // namespace hctr
