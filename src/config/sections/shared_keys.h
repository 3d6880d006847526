// Slots that share a key space, and the tables that read them.
#pragma once

#include "config/sections/config.h"

namespace hctr {

/// If an embedding has "identity": "key", the slots of its input that hash texts get one key space, with the input's
/// name: the table then has one row for a text, in any slot. Not if a slot states a key space, or slots make keys by
/// different rules.
void share_keys_of_tables(Config&);
/// The "layers" of the file with these key spaces, so that a saved config states them.
Json with_key_spaces(const Json& layers, const Config&);

/// Warns of each key space of several slots whose vectors no table shares: because no sparse input has two of its
/// slots, or because rows of the table belong to slot and key. Notes a table with "identity": "key" in which no two
/// slots have a key in common.
void check_shared_keys(Config&, Problems&);

}  // namespace hctr
