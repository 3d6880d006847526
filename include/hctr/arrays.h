// The types of elements in memory of a caller.
#pragma once

namespace hctr {

enum class ElementType { f32, i32, u32, i64, u64 };

}  // namespace hctr
