#include "infer/bag_packing.h"

#include <algorithm>
#include <atomic>

#include "core/base/expect.h"
#include "score/key_views.h"

namespace hctr {
namespace {

constexpr int64_t kBagsOfTask = 8192;

template <class Body>
void with_offsets(const InputView& view, const Body& body) {
  if (view.offsets_type == ElementType::i64) return body(static_cast<const int64_t*>(view.offsets));
  if (view.offsets_type == ElementType::i32) return body(static_cast<const int32_t*>(view.offsets));
  throw Error(Kind::usage, cat("input '", view.name, "': offsets must be i32 or i64"));
}

}  // namespace

BagPacking::BagPacking(ThreadPool& threads, const InputView& view, int64_t first, int64_t count,
                       const SparseInput& section, const BatchShape::Table& shape)
    : threads_(threads),
      view_(view),
      section_(section),
      shape_(shape),
      first_(first),
      count_(count),
      samples_of_task_(std::max<int64_t>(1, kBagsOfTask / shape.slots)) {
  with_offsets(view, [&](const auto* offsets) { count_keys(offsets); });
}

BagPacking::Bag BagPacking::kept(int64_t begin, int64_t end) const {
  if (shape_.keep > 0 && end - begin > shape_.keep)
    shape_.keep_last ? begin = end - shape_.keep : end = begin + shape_.keep;
  return {begin, end};
}

template <class Offset>
void BagPacking::count_keys(const Offset* offsets) {
  const int64_t slots = shape_.slots, tasks = (count_ + samples_of_task_ - 1) / samples_of_task_;
  std::vector<int64_t> most;
  for (int64_t s = 0; s < slots; ++s) most.push_back(section_.kept_nnz(s));
  begins_.assign(static_cast<size_t>(tasks * slots), 0);
  std::atomic<bool> fits = true;
  threads_.parallel_for(count_, samples_of_task_, [&](int64_t from, int64_t to) {
    int64_t* const counts = begins_.data() + from / samples_of_task_ * slots;
    const Offset* at = offsets + (first_ + from) * slots;
    for (int64_t b = from; b < to; ++b, at += slots)
      for (int64_t s = 0; s < slots; ++s) {
        const int64_t begin = at[s], end = at[s + 1];
        if (end < begin)
          throw Error(Kind::usage,
                      cat("input '", view_.name, "': the offsets of slot ", s, " of sample ", first_ + b, " decrease"));
        const Bag bag = kept(begin, end);
        if (bag.end - bag.begin > most[static_cast<size_t>(s)])
          throw Error(Kind::usage,
                      cat("input '", view_.name, "': slot ", s, " of sample ", first_ + b, " has ", bag.end - bag.begin,
                          " keys, but the model accepts up to ", most[static_cast<size_t>(s)]));
        counts[s] += bag.end - bag.begin;
      }
    with_keys(view_, [&](const auto* keys) {
      uint64_t bits = 0;
      const int64_t end = offsets[(first_ + to) * slots];
      for (int64_t k = offsets[(first_ + from) * slots]; k < end; ++k)
        bits |= static_cast<uint64_t>(static_cast<int64_t>(keys[k]));
      if (bits >> 32 != 0) fits.store(false, std::memory_order_relaxed);
    });
  });
  fits_32_ = fits;
  for (int64_t s = 0; s < slots; ++s)
    for (int64_t task = 0; task < tasks; ++task) {
      int64_t& begin = begins_[static_cast<size_t>(task * slots + s)];
      keys_ += std::exchange(begin, keys_);
    }
}

template <class Offset, class From, class To>
void BagPacking::write_keys(const Offset* offsets, const From* from, To* to, int32_t* offsets_to,
                            int64_t samples) const {
  const int64_t slots = shape_.slots;
  threads_.parallel_for(count_, samples_of_task_, [&](int64_t begin, int64_t end) {
    const auto* const of_task = begins_.data() + begin / samples_of_task_ * slots;
    std::vector<int64_t> place(of_task, of_task + slots);
    const Offset* at = offsets + (first_ + begin) * slots;
    for (int64_t b = begin; b < end; ++b, at += slots)
      for (int64_t s = 0; s < slots; ++s) {
        int64_t& next = place[static_cast<size_t>(s)];
        offsets_to[s * samples + b] = static_cast<int32_t>(next);
        const Bag bag = kept(at[s], at[s + 1]);
        for (int64_t k = bag.begin; k < bag.end; ++k) to[next++] = static_cast<To>(static_cast<int64_t>(from[k]));
      }
  });
  for (int64_t s = 0; s < slots; ++s)
    std::fill(offsets_to + s * samples + count_, offsets_to + (s + 1) * samples,
              static_cast<int32_t>(s + 1 < slots ? begins_[static_cast<size_t>(s + 1)] : keys_));
  offsets_to[slots * samples] = static_cast<int32_t>(keys_);
}

void BagPacking::write(const BatchView::Table& table, int64_t samples) const {
  with_offsets(view_, [&](const auto* offsets) {
    with_keys(view_, [&](const auto* keys) {
      if (table.packed->key_bytes == 4)
        write_keys(offsets, keys, table.keys<uint32_t>(), table.offsets(), samples);
      else
        write_keys(offsets, keys, table.keys<int64_t>(), table.offsets(), samples);
    });
  });
}

}  // namespace hctr
