// Lists the keys of a batch without a row in memory, on the host.
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
  /// Looks up the batch and queues the list of keys without a row, on the stream that inserts keys, or if nothing
  /// inserts any. `rows`: [key_capacity] becomes the row of each key; 0: none.
  void start(Context&, const ops::HashIndex&, const ops::KeyBatch&, int32_t* rows);
  /// After the stream of start() has been waited for: the distinct keys of the list, sorted by slot and key, each with
  /// its first occurrence. Sorts in place: call it once; valid until the next start().
  std::span<const ops::MissingKey> different(const ops::HashIndex&);

 private:
  std::optional<Buffer> all_;       // the state of an index that shows all its rows
  std::optional<HostBuffer> list_;  // the count comes first, in the place of a key
  Buffer scratch_;
};

}  // namespace hctr
