// DLPack's layout, as in its specification (version 1).
#include <cstdint>
#include <memory>
#include <vector>

#include "capi/call.h"
#include "core/base/expect.h"

struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

namespace hctr::capi {
namespace {

constexpr int32_t kDlCpu = 1, kDlCuda = 2, kDlCudaHost = 3, kDlCudaManaged = 13;
constexpr uint8_t kDlInt = 0, kDlUint = 1, kDlFloat = 2;

hctr_array array_of(const DLTensor& tensor) {
  const DLDataType type = tensor.dtype;
  const auto dtype = [&]() -> hctr_dtype {
    if (type.lanes == 1 && type.code == kDlFloat && type.bits == 32) return HCTR_F32;
    if (type.lanes == 1 && type.code == kDlInt && type.bits == 32) return HCTR_I32;
    if (type.lanes == 1 && type.code == kDlInt && type.bits == 64) return HCTR_I64;
    if (type.lanes == 1 && type.code == kDlUint && type.bits == 32) return HCTR_U32;
    if (type.lanes == 1 && type.code == kDlUint && type.bits == 64) return HCTR_U64;
    throw Error(Kind::usage,
                cat("a DLPack tensor has elements of code ", int{type.code}, ", ", int{type.bits}, " bits, ",
                    type.lanes, " lanes: expected 32-bit floats, or integers of 32 or 64 bits"));
  }();
  int32_t gpu = -1;
  if (tensor.device.type == kDlCuda || tensor.device.type == kDlCudaManaged)
    gpu = tensor.device.id;
  else if (tensor.device.type != kDlCpu && tensor.device.type != kDlCudaHost)
    throw Error(Kind::usage, cat("a DLPack tensor is on a device of type ", tensor.device.type,
                                 ": expected host memory or a CUDA device"));
  return {
      static_cast<std::byte*>(tensor.data) + tensor.byte_offset, dtype, tensor.ndim, tensor.shape, tensor.strides, gpu};
}

/// A tensor that owns its shape.
struct OwnTensor {
  DLManagedTensor managed{};
  std::vector<int64_t> shape, strides;
  void (*release)(void*) = nullptr;
  void* owner = nullptr;
};

}  // namespace
}  // namespace hctr::capi

hctr_status hctr_array_from_dlpack(const DLManagedTensor* tensor, hctr_array* array) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(tensor, "hctr_array_from_dlpack(): the tensor");
    hctr::capi::expect_given(array, "hctr_array_from_dlpack(): the array");
    *array = hctr::capi::array_of(tensor->tensor);
  });
}

hctr_status hctr_array_from_dlpack_versioned(const DLManagedTensorVersioned* tensor, hctr_array* array) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(tensor, "hctr_array_from_dlpack_versioned(): the tensor");
    hctr::capi::expect_given(array, "hctr_array_from_dlpack_versioned(): the array");
    if (tensor->major != 1)
      throw hctr::Error(hctr::Kind::usage,
                        hctr::cat("a DLPack tensor has version ", tensor->major, ", expected version 1"));
    *array = hctr::capi::array_of(tensor->tensor);
  });
}

hctr_status hctr_array_to_dlpack(const hctr_array* array, void (*release)(void*), void* owner,
                                 DLManagedTensor** tensor) {
  return hctr::capi::call([&] {
    using hctr::capi::OwnTensor;
    hctr::capi::expect_given(array, "hctr_array_to_dlpack(): the array");
    hctr::capi::expect_given(tensor, "hctr_array_to_dlpack(): the tensor");
    if (array->dims < 0 || array->dims > 4 || (array->dims > 0 && !array->shape))
      throw hctr::Error(hctr::Kind::usage, "hctr_array_to_dlpack(): the array has no shape");
    auto own = std::make_unique<OwnTensor>();
    own->shape.assign(array->shape, array->shape + array->dims);
    if (array->strides) own->strides.assign(array->strides, array->strides + array->dims);
    own->release = release;
    own->owner = owner;
    const bool floats = array->dtype == HCTR_F32, is_signed = array->dtype == HCTR_I32 || array->dtype == HCTR_I64;
    const bool narrow = floats || array->dtype == HCTR_I32 || array->dtype == HCTR_U32;
    DLTensor& to = own->managed.tensor;
    to.data = array->data;
    to.device = array->gpu < 0 ? DLDevice{hctr::capi::kDlCpu, 0} : DLDevice{hctr::capi::kDlCuda, array->gpu};
    to.ndim = array->dims;
    to.dtype = {floats      ? hctr::capi::kDlFloat
                : is_signed ? hctr::capi::kDlInt
                            : hctr::capi::kDlUint,
                static_cast<uint8_t>(narrow ? 32 : 64), 1};
    to.shape = own->shape.data();
    to.strides = own->strides.empty() ? nullptr : own->strides.data();
    own->managed.context = own.get();
    own->managed.deleter = [](DLManagedTensor* managed) {
      const std::unique_ptr<OwnTensor> dead(static_cast<OwnTensor*>(managed->context));
      if (dead->release) dead->release(dead->owner);
    };
    *tensor = &own.release()->managed;
  });
}
