// The concept that every epilogue of a GEMM kernel satisfies.
#pragma once

#include <concepts>
#include <type_traits>

namespace hctr::ops::hopper {

/// An epilogue computes the result of a GEMM from the accumulators, in registers. A kernel takes an epilogue as an
/// argument. The kernel's main loop is the same for all epilogues. An epilogue has
///   finish(arguments...)   called for the accumulators of a thread; Arguments differ between the main loops
///   kSums                  whether the kernel also sums the columns of the result, for a bias gradient
///   sums                   with kSums: where the kernel stores the column sums
/// Main loops refine the concept, and assert it where they launch a kernel: ElementEpilogue (fused_product.cuh),
/// GateEpilogue (cross_product_sm90a.cu) and F32Epilogue (f32_product.cuh).
template <class E, class Result, class... Arguments>
concept Epilogue = std::is_trivially_copyable_v<E> && std::same_as<decltype(E::kSums), const bool> &&
                   requires(const E& epilogue, Arguments... arguments) {
                     { epilogue.finish(arguments...) } -> std::same_as<Result>;
                   } && (!E::kSums || requires(const E& epilogue) {
                     { epilogue.sums } -> std::convertible_to<float*>;
                   });

}  // namespace hctr::ops::hopper
