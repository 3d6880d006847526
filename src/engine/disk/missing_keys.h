// Lists on the host the keys of a batch that have no row in memory.
#pragma once

#include <optional>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "ops/embedding/hash_index.h"
#include "ops/embedding/list_missing_keys.h"

namespace hctr {

class MissingKeys {
 public:
  /// Looks up the batch and queues the list of keys without a row. Call on the stream that inserts keys, or while no
  /// stream inserts keys. Writes the row of each key to `rows` [key_capacity], and 0 for a key without a row.
  void start(Context&, const ops::HashIndex&, const ops::KeyBatch&, int32_t* rows);
  /// Returns the distinct keys of the list, sorted by slot and key, each with its first occurrence. The stream of
  /// start() must have been synchronized. Sorts in place, so call this only once. Valid until the next start().
  std::span<const ops::MissingKey> different(const ops::HashIndex&);

 private:
  std::optional<Buffer> all_;       // a copy of the index state that includes all rows
  std::optional<HostBuffer> list_;  // the first element stores the count of keys
  Buffer scratch_;
};

}  // namespace hctr
