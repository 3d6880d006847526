#include "engine/tiers/tier_plan.h"

#include <algorithm>
#include <string>

#include "core/base/expect.h"
#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/rows/row_arrays.h"
#include "engine/spec/setting_words.h"

namespace hctr {
namespace {

/// Whether all rows of direct keys fit in memory.
bool all_rows_fit(Runtime& runtime, const TableSpec& spec) {
  const RowMemory& budget = budget_of(runtime, spec);
  const bool two_memories = runtime.device().is_cuda() || budget.limits().device != 0;
  const int64_t rows = spec.direct.rows(), numbers = rows * number_bytes_of_row(spec),
                rest = rows * (bytes_of_row(spec) + (two_memories ? bytes_of_moving_row(true) : 0)) - numbers,
                device = std::min(budget.device_room(), free_memory(runtime.device())),
                granules = 2 * (1 + spec.optimizer.states()) *
                           static_cast<int64_t>(ReservedBuffer(runtime.device(), 1).granularity());
  return rest < (two_memories ? device : free_memory(runtime.device())) &&
         numbers + rest + granules <= budget.host_room() + device;
}

std::string gib(int64_t bytes) {
  const int64_t tenths = (bytes * 10 + (1 << 29)) / (1 << 30);
  return cat(tenths / 10, ".", tenths % 10, " GiB");
}

}  // namespace

bool may_be_on_disk(Runtime& runtime, const TableSpec& spec) {
  return budget_of(runtime, spec).has_disk() && !spec.fixed_keys && spec.rows_move && number_bytes_of_row(spec) > 0 &&
         (spec.direct.empty() || (!spec.changes_every_row() && !all_rows_fit(runtime, spec)));
}

bool rows_may_move(Runtime& runtime, const TableSpec& spec) {
  const RowMemoryLimits& limits = budget_of(runtime, spec).limits();
  return spec.rows_move && !spec.fixed_keys && number_bytes_of_row(spec) > 0 && limits.move_every > 0 &&
         (runtime.device().is_cuda() || limits.device != 0);
}

int64_t rows_at_a_time(const TableSpec& spec, int64_t batch_keys) {
  return std::max(batch_keys, spec.eval_key_capacity) + spec.policy.shares_row();
}

int64_t rows_to_reserve(Runtime& runtime, const TableSpec& spec, int64_t least, int64_t most) {
  const RowMemory& budget = budget_of(runtime, spec);
  const int64_t numbers = number_bytes_of_row(spec), rest = bytes_of_row(spec) - numbers;
  int64_t rows = free_memory(runtime.device()) / bytes_of_row(spec);
  if (runtime.device().is_cuda() && budget.has_host() && numbers > 0) {
    const int64_t more = rows + budget.host_room() / numbers;
    rows = rest > 0 ? std::min(more, free_memory(runtime.device()) / rest) : more;
  }
  // Addresses may be limited too, so reserve addresses only for rows that fit in memory.
  if (budget.has_disk() && numbers > 0)
    rows = std::min(rows,
                    (budget.limits().device.value_or(free_memory(runtime.device())) + budget.limits().host) / numbers);
  return std::min({std::max(rows, least), kMostRows, most});
}

int64_t all_direct_rows(Runtime& runtime, const TableSpec& spec) {
  const RowMemory& budget = budget_of(runtime, spec);
  const int64_t rows = spec.direct.rows(), numbers = number_bytes_of_row(spec), bytes_per_row = bytes_of_row(spec),
                bytes = rows * bytes_per_row, free = free_memory(runtime.device());
  if (bytes <= free) return rows;
  const bool two_memories = runtime.device().is_cuda() && budget.has_host();
  const int64_t moving = rows_may_move(runtime, spec) ? bytes_of_moving_row(true) : 0;
  if (two_memories && rows * (bytes_per_row - numbers + moving) < free &&
      rows * numbers <= budget.host_room() + std::min(budget.device_room(), free))
    return rows;
  const SettingWords& words = setting_words(budget.limits());
  throw Error(Kind::device, cat(RowArrays::label_of(spec), ": the ", rows, " rows of ", words.row_numbers, " take ",
                                bytes, " bytes (", gib(bytes), "), but ", free, " bytes (", gib(free), ") are free on ",
                                to_string(runtime.device()),
                                two_memories ? cat(", and ", budget.host_room(), " bytes (", gib(budget.host_room()),
                                                   ") of host memory may be used (", budget.limits().host_setting, ")")
                                : runtime.device().is_cuda() ? cat(" (", words.host, ")")
                                                             : std::string(),
                                "; ", words.smaller_rows, spec.ranks > 1 ? words.spread : "", "or ", words.hash,
                                ", which uses memory only for keys that occur"));
}

}  // namespace hctr
