#include "engine/tiers/rows_in_use.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/device/copy_bytes.h"

namespace hctr {
namespace {

// swaps after which the use counts are halved; large enough to tell rarely used from frequently used rows
constexpr int64_t kHalveAfter = 8;

/// Creates a column with one integer of `bytes` bytes per row, with memory for `rows` rows.
RowColumn column_of_uses(const RowArrays& arrays, std::string name, int64_t bytes, int64_t rows) {
  RowColumn made{
      .memory = ReservedBuffer(arrays.runtime().device(), static_cast<size_t>((arrays.most_rows() + 1) * bytes)),
      .bytes_per_row = bytes,
      .name = std::move(name),
      .type = "",
      .elements_per_row = 1,
      .numbers = false,
      .saved = false};
  made.memory.grow(made.bytes_to(rows));
  return made;
}

}  // namespace

RowsInUse::RowsInUse(RowArrays& arrays, RowIndex& index, RowChanges& changes, int64_t rows, bool direct)
    : arrays_(arrays), index_(index), changes_(changes), direct_(direct), most_(most_swaps(arrays.most_rows())) {
  const Device device = arrays.runtime().device();
  reads_ = Buffer(device, 2 * sizeof(uint64_t));
  pairs_ = Buffer(device, static_cast<size_t>(2 * most_) * sizeof(int32_t));
  scratch_ = Buffer(device, ops::swap_scratch_bytes(device, arrays.most_rows()));
  std::vector<RowColumn> added;
  added.push_back(column_of_uses(arrays, "uses", 1, rows));
  rows_.uses = reinterpret_cast<uint8_t*>(added[0].memory.data());
  rows_.reads = reinterpret_cast<uint64_t*>(reads_.data());
  if (direct_) {
    added.push_back(column_of_uses(arrays, "numbers", sizeof(int32_t), rows));
    numbers_ = reinterpret_cast<int32_t*>(added[1].memory.data());
    places_ = Buffer(device, static_cast<size_t>(rows + 1) * sizeof(int32_t));
  }
  // Add the columns last. If memory runs out before, the table is unchanged.
  for (RowColumn& each : added) arrays_.add(std::move(each));
  number_by_key();
}

void RowsInUse::number_by_key() {
  if (!direct_) return;
  auto* const places = reinterpret_cast<int32_t*>(places_.data());
  constexpr int64_t kBlock = int64_t{1} << 20;
  const int64_t all = arrays_.most_rows() + 1;  // all rows, because in a table without an index every row exists
  const StreamRef stream = arrays_.runtime().compute_stream();
  std::vector<int32_t> numbers(static_cast<size_t>(std::min(kBlock, all)));
  for (int64_t first = 0; first < all; first += kBlock) {
    const auto bytes = static_cast<size_t>(std::min(kBlock, all - first)) * sizeof(int32_t);
    std::iota(numbers.begin(), numbers.end(), static_cast<int32_t>(first));
    copy_bytes(stream, numbers_ + first, numbers.data(), bytes);
    copy_bytes(stream, places + first, numbers.data(), bytes);
    stream.synchronize();
  }
}

void RowsInUse::note_border() {
  int64_t first_on_host = arrays_.most_rows() + 1;
  for (const RowColumn& column : arrays_.columns())
    if (column.numbers && column.memory.bytes() > column.memory.device_bytes())
      first_on_host =
          std::min(first_on_host, static_cast<int64_t>(column.memory.device_bytes()) / column.bytes_per_row);
  rows_.first_on_host = std::max<int64_t>(1, first_on_host);  // row 0 stands for "no row", so the first row is 1
  if (!direct_) return;
  ops::DirectIndex direct = arrays_.data().identity.direct;
  direct.places = reinterpret_cast<const int32_t*>(places_.data());
  direct.numbers = numbers_;
  arrays_.set_direct(direct);
}

void RowsInUse::count(const ops::RowGroups& groups, int64_t key_capacity) {
  if (!counts()) return;
  Context ctx(arrays_.runtime(), arrays_.runtime().prepare_stream());
  ops::add_uses(ctx, groups, key_capacity, rows_);
}

void RowsInUse::swap(int64_t every, bool always, std::span<const int32_t> left) {
  if (!counts() || every == 0 || ++batches_ < every) return;
  batches_ = 0;
  const ops::IndexState now = index_.state();  // waits for queued work
  const int64_t rows = now.rows, first_on_host = rows_.first_on_host;
  // Do not swap while a prepared batch waits for its step: the batch contains row numbers that a swap would change.
  if (rows < first_on_host || now.rows != now.finished) return;
  Context ctx(arrays_.runtime(), arrays_.runtime().compute_stream());
  ops::UseCounts on_device, on_host;
  // Free row numbers have no uses. Give free row numbers on the device the maximum count, so that they are not swapped.
  const std::span<const int32_t> left_on_device =
      left.first(static_cast<size_t>(std::lower_bound(left.begin(), left.end(), first_on_host) - left.begin()));
  if (!left_on_device.empty())
    arrays_.for_listed(ctx.stream(), left_on_device, [this](Context& own, const int32_t* some, int64_t count) {
      ops::mark_rows(own, some, count, rows_.uses, 255);
    });
  ops::count_uses(ctx, rows_.uses, index_.view().first_row, first_on_host - 1, scratch_.data(), on_device);
  ops::count_uses(ctx, rows_.uses, first_on_host, rows, scratch_.data(), on_host);
  if (!left.empty()) on_device[255] = on_host[0] = 0;
  swap_chosen(ctx, ops::plan_swaps(on_device, on_host, most_, always), rows);
  if (!left_on_device.empty())
    arrays_.for_listed(ctx.stream(), left_on_device, [this](Context& own, const int32_t* some, int64_t count) {
      ops::zero_rows(own, some, count, rows_.uses, 1);
    });
  if (++calls_ % kHalveAfter == 0) ops::halve_uses(ctx, rows, rows_.uses);
  ctx.stream().synchronize();
}

void RowsInUse::swap_chosen(Context& ctx, const ops::SwapPlan& plan, int64_t rows) {
  if (plan.count == 0) return;
  const int64_t first_on_host = rows_.first_on_host, first_row = index_.view().first_row;
  auto* const hot = reinterpret_cast<int32_t*>(pairs_.data());
  int32_t* const cold = hot + most_;
  const auto select = [&](int64_t first, int64_t last, int low, int high, int64_t most, int32_t* out) {
    ops::select_by_uses(ctx, rows_.uses, first, last, low, high, most, scratch_.data(), out);
  };
  select(first_on_host, rows, plan.hot_limit + 1, 255, plan.hot_beyond, hot);
  select(first_on_host, rows, plan.hot_limit, plan.hot_limit, plan.count - plan.hot_beyond, hot + plan.hot_beyond);
  select(first_row, first_on_host - 1, 0, plan.cold_limit - 1, plan.cold_beyond, cold);
  select(first_row, first_on_host - 1, plan.cold_limit, plan.cold_limit, plan.count - plan.cold_beyond,
         cold + plan.cold_beyond);
  swap_rows(ctx, hot, cold, plan.count);
  moved_ += plan.count;
}

void RowsInUse::swap_rows(Context& ctx, const int32_t* one, const int32_t* other, int64_t count) {
  for (const RowColumn& column : arrays_.columns())
    ops::swap_rows(ctx, one, other, count, column.memory.data(), column.bytes_per_row);
  if (direct_ && changes_.are_marked()) ops::swap_rows(ctx, one, other, count, arrays_.marks(), 1);
  if (!direct_) changes_.note_other_keys();
  for (const int32_t* rows : {one, other}) {
    if (direct_) {
      ops::note_places(ctx, rows, count, numbers_, reinterpret_cast<int32_t*>(places_.data()));
      continue;
    }
    ops::index_renumber(ctx, index_.view(), rows, count);
    if (changes_.are_marked()) changes_.mark(ctx, rows, count, ops::kRowChanged);
  }
}

void RowsInUse::report(HostRows& on_host) const {
  if (!counts()) return;
  const StreamRef stream = arrays_.runtime().compute_stream();
  int64_t reads[2] = {};
  copy_bytes(stream, reads, reads_.data(), sizeof reads);
  stream.synchronize();
  on_host.moved = moved_;
  on_host.reads = reads[0];
  on_host.reads_on_device = reads[1];
}

}  // namespace hctr
