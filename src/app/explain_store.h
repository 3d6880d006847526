// The texts of `huge_ctr --explain` about store.json.
#pragma once

#include "config/sections/config_manual.h"

namespace hctr {

/// Topic "store": the fields of store.json. Topic "store_schema": docs/store.schema.json.
ManualEntries store_entries();

}  // namespace hctr
