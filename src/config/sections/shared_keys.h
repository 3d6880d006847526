// Handles slots with a common key space, and the tables that read them.
#pragma once

#include "config/sections/config.h"

namespace hctr {

/// For each embedding with "identity": "key", assigns one key space to all slots of its input that hash texts; the key
/// space has the input's name. The table then has one row per text in all slots. Skipped if a slot states a key space,
/// or if the slots compute keys by different rules.
void share_keys_of_tables(Config&);
/// Returns the config's "layers", with the key spaces that share_keys_of_tables() has assigned. Saved configs contain
/// them.
Json with_key_spaces(const Json& layers, const Config&);

/// Warns about each key space of several slots for which no table shares vectors between the slots. A table shares none
/// if its sparse input has at most one of these slots, or if it identifies rows by slot and key. Adds a note for each
/// table with "identity": "key" whose slots have no keys in common.
void check_shared_keys(Config&, Problems&);

}  // namespace hctr
