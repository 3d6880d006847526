#include "engine/spec/setting_words.h"

namespace hctr {
namespace {

constexpr SettingWords kFieldsOfConfig{
    .row_numbers = "\"slot_size_array\"",
    .full =
        "let the table grow (without \"grow\": false and \"when_full\"), or evict rows for new keys (\"when_full\": "
        "\"evict_lru\")",
    .smaller_batch = "train with a smaller \"batchsize\"",
    .hash = "\"index\": \"hash\"",
    .smaller_rows = "smaller sizes, \"storage\": \"bf16\", ",
    .spread = "\"placement\": \"auto\", which shards tables too large for one rank, ",
    .host = "set \"table_memory\" to add host memory",
    .larger_device = "\"gpu\" larger",
    .disk = "name a \"disk\" in \"table_memory\"",
    .disk_limit = "\"disk_limit\" of \"table_memory\"",
    .global = "\"update_type\": \"Global\"",
    .not_global = "use \"Local\" or \"LazyGlobal\"; or remove \"disk\" of \"table_memory\""};

constexpr SettingWords kOptionsOfSet{
    .row_numbers = "\"rows\"",
    .full = "let the table grow (most_rows = 0), or evict rows for new keys (when_full: evict_lru)",
    .smaller_batch = "use batches with fewer keys",
    .hash = "rows = 0",
    .smaller_rows = "fewer rows, a format of two bytes, ",
    .spread = "placement: spread, ",
    .host = "set host_bytes to add host memory",
    .larger_device = "device_bytes larger",
    .disk = "name a folder in `disk`",
    .disk_limit = "disk_bytes",
    .global = "rows: global",
    .not_global = "use local or lazy_global; or remove `disk`"};

}  // namespace

const SettingWords& setting_words(const RowMemoryLimits& limits) {
  return limits.of_options ? kOptionsOfSet : kFieldsOfConfig;
}

}  // namespace hctr
