// Slots that share a key space, and the tables that read them.
#pragma once

#include "model/config.h"

namespace hctr {

/// Warns of each key space of several slots whose vectors no table shares: because no sparse input has two of its
/// slots, or because rows of the table belong to slot and key. Notes a table that is said to have one row a key where
/// no two of its slots have a key in common.
void check_shared_keys(Config&, Problems&);

}  // namespace hctr
