#include "core/device/tensor_map.cuh"

#include "core/device/driver_function.cuh"

namespace hctr::cuda {

CUtensorMap tensor_map(const Tensor& t, int box_columns, int box_rows, Swizzle swizzle) {
  static const auto encode = driver<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  CUtensorMap map;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(t.dim(1)), static_cast<cuuint64_t>(t.dim(0))};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(t.row_stride()) * size_of(t.dtype())};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUtensorMapDataType type = t.dtype() == DType::f32    ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                   : t.dtype() == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                              : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  HCTR_CHECK(encode(&map, type, 2, t.bytes(), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                    swizzle == Swizzle::none ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
                    CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

}  // namespace hctr::cuda
