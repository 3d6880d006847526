// An array with one vector of elements per row, in one of the storage types of a table.
#pragma once

#include "core/base/dtype.h"
#include "ops/embedding/direct_index.h"

namespace hctr::ops {

struct RowMemory {
  void* data = nullptr;
  DType dtype = DType::f32;

  explicit operator bool() const { return data != nullptr; }
  template <class T>
  HCTR_HD T* as() const {
    return static_cast<T*>(data);
  }
  /// The address of element `at`.
  HCTR_HD std::byte* address(int64_t at) const { return static_cast<std::byte*>(data) + at * bytes_of(dtype); }

 private:
  HCTR_HD static int64_t bytes_of(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? 2 : 4; }
};

/// The key and slot of each row: recorded by index_insert(), or computed by a direct index.
struct RowIdentity {
  const int64_t* keys = nullptr;   // [rows]; null: use `direct`
  const int32_t* slots = nullptr;  // [rows]; null: slots share rows
  DirectIndex direct;

  HCTR_HD RowOwner of(int64_t row) const {
    if (!keys) return direct.owner(row);
    return {keys[row], slots ? slots[row] : 0};
  }
};

}  // namespace hctr::ops
