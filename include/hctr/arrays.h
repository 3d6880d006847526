// The element types of a caller's arrays.
#pragma once

namespace hctr {

enum class ElementType { f32, i32, u32, i64, u64 };

}  // namespace hctr
