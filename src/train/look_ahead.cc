#include "train/look_ahead.h"

#include <new>
#include <utility>

namespace hctr {
namespace {

std::vector<ops::RowOwner> keys_with_slots(const BatchView::Table& table, int64_t slots) {
  std::vector<ops::RowOwner> keys;
  keys.reserve(static_cast<size_t>(table.offset(slots * table.samples)));
  for (int64_t slot = 0; slot < slots; ++slot) {
    const int32_t end = table.offset((slot + 1) * table.samples);
    for (int32_t i = table.offset(slot * table.samples); i < end; ++i)
      keys.push_back({table.key(i), static_cast<int32_t>(slot)});
  }
  return keys;
}

}  // namespace

LookAhead::LookAhead(Ask ask, size_t batches) : ask_(std::move(ask)), batches_(batches), thread_([this] { run(); }) {}

void LookAhead::add(const BatchView& batch) noexcept try {
  Keys keys;
  for (size_t t = 0; t < batch.tables.size(); ++t)
    keys.push_back(keys_with_slots(batch.tables[t], batch.layout->shape.tables[t].slots));
  batches_.push(std::move(keys));
} catch (const std::bad_alloc&) {  // the step waits for its rows
}

void LookAhead::stop() {
  batches_.close();
  if (thread_.joinable()) thread_.join();
}

void LookAhead::run() noexcept {
  while (const std::optional<Keys> batch = batches_.pop()) try {
      for (size_t input = 0; input < batch->size(); ++input) ask_(input, (*batch)[input]);
    } catch (const std::bad_alloc&) {  // likewise
    }
}

}  // namespace hctr
