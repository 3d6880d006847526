// Rows that batches use often change places with rows of the device that they seldom use.
#include <algorithm>
#include <numeric>

#include "device/copy.h"
#include "embedding/row_store.h"
#include "ops/embedding/row_swap.h"

namespace hctr {
namespace {

constexpr int64_t kHalveAfter = 8;  // calls: rows that few batches use are told apart by what many batches used

}  // namespace

void RowStore::allocate_uses(int64_t rows) {
  const Device device = runtime_.device();
  const auto column = [&](std::string name, int64_t bytes) {
    Column made{.memory = ReservedBuffer(device, static_cast<size_t>((arrays_.most_rows() + 1) * bytes)),
                .bytes_per_row = bytes,
                .name = std::move(name),
                .type = "",
                .elements_per_row = 1,
                .numbers = false,
                .saved = false};
    made.memory.grow(made.bytes_to(rows));
    return made;
  };
  RowsInUse uses;
  uses.most_swaps = most_swaps(arrays_.most_rows());
  uses.reads = Buffer(device, 2 * sizeof(uint64_t));
  uses.pairs = Buffer(device, static_cast<size_t>(2 * uses.most_swaps) * sizeof(int32_t));
  uses.scratch = Buffer(device, ops::swap_scratch_bytes(device, arrays_.most_rows()));
  std::vector<Column> added;
  added.push_back(column("uses", 1));
  uses.rows.uses = reinterpret_cast<uint8_t*>(added[0].memory.data());
  uses.rows.reads = reinterpret_cast<uint64_t*>(uses.reads.data());
  if (!keys_.empty()) {
    added.push_back(column("numbers", sizeof(int32_t)));
    uses.numbers = reinterpret_cast<int32_t*>(added[1].memory.data());
    uses.places = Buffer(device, static_cast<size_t>(rows + 1) * sizeof(int32_t));
  }
  // Only now: where memory was short, nothing has changed.
  uses_ = std::move(uses);
  account_.set_uses(uses_->bytes());
  for (Column& each : added) arrays_.add(std::move(each));
  number_by_key();
}

void RowStore::number_by_key() {
  if (!uses_ || keys_.empty()) return;
  auto* const places = reinterpret_cast<int32_t*>(uses_->places.data());
  constexpr int64_t kBlock = int64_t{1} << 20;
  const StreamRef stream = runtime_.compute_stream();
  std::vector<int32_t> numbers(static_cast<size_t>(std::min(kBlock, keys_.rows() + 1)));
  for (int64_t first = 0; first <= keys_.rows(); first += kBlock) {
    const auto bytes = static_cast<size_t>(std::min(kBlock, keys_.rows() + 1 - first)) * sizeof(int32_t);
    std::iota(numbers.begin(), numbers.end(), static_cast<int32_t>(first));
    copy_bytes(stream, uses_->numbers + first, numbers.data(), bytes);
    copy_bytes(stream, places + first, numbers.data(), bytes);
    stream.synchronize();
  }
}

void RowStore::note_border() {
  int64_t first_on_host = arrays_.most_rows() + 1;
  for (const Column& column : arrays_.columns())
    if (column.numbers && column.memory.bytes() > column.memory.device_bytes())
      first_on_host =
          std::min(first_on_host, static_cast<int64_t>(column.memory.device_bytes()) / column.bytes_per_row);
  uses_->rows.first_on_host = std::max<int64_t>(1, first_on_host);  // there is no row 0
  if (!keys_.empty()) {
    ops::DirectIndex direct = arrays_.data().identity.direct;
    direct.places = reinterpret_cast<const int32_t*>(uses_->places.data());
    direct.numbers = uses_->numbers;
    arrays_.set_direct(direct);
  }
}

void RowStore::count_uses(const ops::RowGroups& groups, int64_t key_capacity) {
  if (!counts_uses()) return;
  Context ctx(runtime_, runtime_.prepare_stream());
  ops::add_uses(ctx, groups, key_capacity, uses_->rows);
}

void RowStore::swap_by_use() {
  const int64_t every = budget_.limits().move_every;
  if (!counts_uses() || every == 0 || ++uses_->batches < every) return;
  uses_->batches = 0;
  const ops::IndexState now = index_.state();  // waits
  const int64_t rows = now.rows, first_on_host = uses_->rows.first_on_host;
  // A batch that waits for its step has the numbers of its rows already.
  if (rows < first_on_host || now.rows != now.finished) return;
  Context ctx(runtime_, runtime_.compute_stream());
  const uint8_t* const uses = uses_->rows.uses;
  std::byte* const scratch = uses_->scratch.data();
  const int64_t first_row = index_.view().first_row, last_on_device = first_on_host - 1;
  ops::UseCounts on_device, on_host;
  // Places that rows have left have no uses. Here those of the device seem to have the most, so that none of them
  // changes places.
  const std::span<const int32_t> left = free_.rows(),
                                 left_on_device = left.first(static_cast<size_t>(
                                     std::lower_bound(left.begin(), left.end(), first_on_host) - left.begin()));
  if (!left_on_device.empty())
    arrays_.for_listed(ctx.stream(), left_on_device, [this](Context& own, const int32_t* some, int64_t count) {
      ops::mark_rows(own, some, count, uses_->rows.uses, 255);
    });
  ops::count_uses(ctx, uses, first_row, last_on_device, scratch, on_device);
  ops::count_uses(ctx, uses, first_on_host, rows, scratch, on_host);
  if (!left.empty()) on_device[255] = on_host[0] = 0;
  const ops::SwapPlan plan = ops::plan_swaps(on_device, on_host, uses_->most_swaps, budget_.limits().swap_always);
  if (plan.count > 0) {
    auto* const hot = reinterpret_cast<int32_t*>(uses_->pairs.data());
    int32_t* const cold = hot + uses_->most_swaps;
    ops::select_by_uses(ctx, uses, first_on_host, rows, plan.hot_limit + 1, 255, plan.hot_beyond, scratch, hot);
    ops::select_by_uses(ctx, uses, first_on_host, rows, plan.hot_limit, plan.hot_limit, plan.count - plan.hot_beyond,
                        scratch, hot + plan.hot_beyond);
    ops::select_by_uses(ctx, uses, first_row, last_on_device, 0, plan.cold_limit - 1, plan.cold_beyond, scratch, cold);
    ops::select_by_uses(ctx, uses, first_row, last_on_device, plan.cold_limit, plan.cold_limit,
                        plan.count - plan.cold_beyond, scratch, cold + plan.cold_beyond);
    swap_rows(ctx, hot, cold, plan.count);
    uses_->moved += plan.count;
  }
  if (!left_on_device.empty())
    arrays_.for_listed(ctx.stream(), left_on_device, [this](Context& own, const int32_t* some, int64_t count) {
      ops::zero_rows(own, some, count, uses_->rows.uses, 1);
    });
  if (++uses_->calls % kHalveAfter == 0) ops::halve_uses(ctx, rows, uses_->rows.uses);
  ctx.stream().synchronize();
}

void RowStore::swap_rows(Context& ctx, const int32_t* one, const int32_t* other, int64_t count) {
  for (const Column& column : arrays_.columns())
    ops::swap_rows(ctx, one, other, count, column.memory.data(), column.bytes_per_row);
  if (!keys_.empty() && arrays_.marks()) ops::swap_rows(ctx, one, other, count, arrays_.marks(), 1);
  changes_.note_other_keys(!keys_.empty());
  for (const int32_t* rows : {one, other}) {
    if (!keys_.empty()) {
      ops::note_places(ctx, rows, count, uses_->numbers, reinterpret_cast<int32_t*>(uses_->places.data()));
      continue;
    }
    ops::index_renumber(ctx, index_.view(), rows, count);
    if (changes_.are_marked()) changes_.mark(ctx, rows, count, ops::kRowChanged);
  }
}

RowStore::HostRows RowStore::host_rows() {
  const int64_t rows = static_cast<int64_t>(index_.state().finished) - shared_rows();
  HostRows on_host;
  for (const Column& column : arrays_.columns()) {
    const auto device = static_cast<int64_t>(column.memory.device_bytes());
    if (static_cast<int64_t>(column.bytes_to(rows)) <= device || column.memory.bytes() == column.memory.device_bytes())
      continue;
    on_host.bytes += static_cast<int64_t>(column.bytes_to(rows)) - device;
    on_host.rows = std::max(on_host.rows, std::min(rows, rows - device / column.bytes_per_row + 1));
  }
  const std::span<const int32_t> left = free_.rows();
  if (on_host.rows > 0) on_host.rows -= left.end() - std::upper_bound(left.begin(), left.end(), rows - on_host.rows);
  if (!counts_uses()) return on_host;
  int64_t reads[2] = {};
  copy_bytes(runtime_.compute_stream(), reads, uses_->reads.data(), sizeof reads);
  runtime_.compute_stream().synchronize();
  on_host.moved = uses_->moved;
  on_host.reads = reads[0];
  on_host.reads_on_device = reads[1];
  return on_host;
}

}  // namespace hctr
