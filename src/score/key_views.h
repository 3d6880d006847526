// Accesses keys in the caller's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/expect.h"
#include "formats/data/batch_layout.h"
#include "hctr/model.h"

namespace hctr {

/// Calls body(keys) with a pointer to the caller's keys. The pointer has the type of the keys, such as const int32_t*.
template <class Body>
void with_keys(const InputView& view, const Body& body) {
  switch (view.type) {
    case ElementType::i32:
      return body(static_cast<const int32_t*>(view.data));
    case ElementType::u32:
      return body(static_cast<const uint32_t*>(view.data));
    case ElementType::i64:
    case ElementType::u64:
      return body(static_cast<const int64_t*>(view.data));  // u64 keys are reinterpreted as i64
    case ElementType::f32:
      break;
  }
  throw Error(Kind::usage, cat("input '", view.name, "': keys must be integers of 32 or 64 bits"));
}

/// Bytes per key.
inline size_t key_width(const InputView& view) {
  size_t width = 0;
  with_keys(view, [&](const auto* keys) { width = sizeof *keys; });
  return width;
}

/// The KeyForm for keys that are copied unchanged from the caller: one key per slot, ordered by sample.
inline KeyForm form_of_ones(const InputView& view, int64_t rows, int64_t slots) {
  return {.count = rows * slots,
          .fits_32 = view.type == ElementType::u32,
          .ones = true,
          .rows = rows,
          .by_sample = true,
          .sign_extends = view.type == ElementType::i32};
}

/// The offsets of the caller's bags.
class KeyBags {
 public:
  KeyBags(const InputView& view, int64_t slots)
      : slots_(slots),
        stride_(view.stride == 0 ? slots : view.stride),
        wide_(view.offsets_type == ElementType::i64 ? static_cast<const int64_t*>(view.offsets) : nullptr),
        narrow_(view.offsets_type == ElementType::i32 ? static_cast<const int32_t*>(view.offsets) : nullptr) {
    if (view.offsets && !wide_ && !narrow_)
      throw Error(Kind::usage, cat("input '", view.name, "': offsets must be i32 or i64"));
  }
  bool one_each() const { return !wide_ && !narrow_; }
  int64_t begin(int64_t sample, int64_t slot) const {
    return one_each() ? sample * stride_ + slot : at(sample * slots_ + slot);
  }
  int64_t end(int64_t sample, int64_t slot) const {
    return one_each() ? begin(sample, slot) + 1 : at(sample * slots_ + slot + 1);
  }

 private:
  int64_t at(int64_t bag) const { return wide_ ? wide_[bag] : narrow_[bag]; }

  int64_t slots_, stride_;
  const int64_t* wide_;
  const int32_t* narrow_;
};

}  // namespace hctr
