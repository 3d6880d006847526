#include "ops/gemm/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "core/base/environment.h"
#include "core/base/expect.h"
#include "core/base/processor.h"

namespace hctr::ops {
namespace {

struct Blas {
  decltype(&cblas_sgemm) sgemm;
  decltype(&cblas_dgemm) dgemm;
  std::string_view kernels;  ///< name of OpenBLAS's kernels; empty for another library
};

template <class Function>
Function blas_function(void* library, const char* name) {
  void* const found = library ? ::dlsym(library, name) : nullptr;
  if (!found)
    throw Error(Kind::device, cat("the BLAS library " HCTR_BLAS_NAME " cannot be loaded: ", ::dlerror(),
                                  "; the library existed when this program was built. Is memory limited (ulimit "
                                  "-v)?"));
  return reinterpret_cast<Function>(found);
}

/// The name of the kernels that OpenBLAS selected. Empty for another library.
std::string_view kernels_of(void* library) {
  using Name = char* (*)();
  const auto name = library ? reinterpret_cast<Name>(::dlsym(library, "openblas_get_corename")) : nullptr;
  return name ? name() : "";
}

/// Restricts the calling thread to one core during the object's lifetime.
class OneCore {
 public:
  OneCore() {
    // fails if there are more cores than in a cpu_set_t
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
    limited_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OneCore() {
    if (limited_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_{};
  bool limited_ = false;
};

/// Loads the library. Returns null if the library or memory for it is missing.
void* open_blas() {
  const OneCore one_core;
  return ::dlopen(HCTR_BLAS_NAME, RTLD_NOW | RTLD_LOCAL);
}

/// Loads the library. OpenBLAS selects its kernels during the load, so the library is loaded again if other kernels are
/// better.
void* library_with_good_kernels(const Surroundings& around) {
  constexpr const char* kChoice = "OPENBLAS_CORETYPE";
  void* const of_others = ::dlopen(HCTR_BLAS_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (of_others) return of_others;
  void* const library = open_blas();
  const auto set_threads =
      library ? reinterpret_cast<void (*)(int)>(::dlsym(library, "openblas_set_num_threads")) : nullptr;
  if (set_threads) set_threads(1);  // our thread pool splits GEMMs into tiles, one tile per thread
  const std::string_view better = better_blas_kernels(kernels_of(library), processor_has);
  if (better.empty() || !around.set_environment || variable_of(around.environment, kChoice)) return library;
  ::dlclose(library);
  around.set_environment(kChoice, std::string(better).c_str());
  void* const again = open_blas();
  around.set_environment(kChoice, nullptr);
  return again;
}

/// Returns the library's functions. Only the first call loads the library.
const Blas& blas(const Surroundings& around = {}) {
  static const Blas functions = [&] {
    void* const library = library_with_good_kernels(around);
    return Blas{blas_function<decltype(Blas::sgemm)>(library, "cblas_sgemm"),
                blas_function<decltype(Blas::dgemm)>(library, "cblas_dgemm"), kernels_of(library)};
  }();
  return functions;
}

/// Guards OpenBLAS's GEMM memory: if the system refuses an allocation, OpenBLAS waits forever. OpenBLAS keeps memory
/// for the largest number of GEMMs that have run concurrently so far. Before this number grows, the constructor tests
/// whether the system has memory for all running GEMMs. (The memory of the new GEMM alone is not enough for this test:
/// other GEMMs may not have allocated their memory yet.) If memory is missing, the GEMM waits until another GEMM has
/// ended.
class BlasMemory {
 public:
  BlasMemory() {
    const int products = ++running_;
    if (products <= most_) return;
    std::unique_lock lock(mutex_);
    if (products <= most_) return;
    // volatile: the compiler could otherwise remove both malloc and free
    void* volatile memory = std::malloc(kBytes * static_cast<size_t>(products));
    const bool there = memory != nullptr;
    std::free(memory);
    if (there) {
      most_ = products;
      return;
    }
    --running_;
    if (most_ == 0)
      throw Error(Kind::device, cat("no memory for the ", kBytes >> 20,
                                    " MiB that the BLAS library needs for each thread: use fewer ",
                                    "(--threads), or raise the limit of addresses (ulimit -v)"));
    ++waiting_;
    ended_.wait(lock, [] {
      int others = running_;
      while (others < most_)
        if (running_.compare_exchange_weak(others, others + 1)) return true;
      return false;
    });
    --waiting_;
  }
  ~BlasMemory() {
    --running_;
    if (waiting_ == 0) return;
    const std::lock_guard lock(mutex_);
    ended_.notify_one();
  }
  BlasMemory(const BlasMemory&) = delete;
  BlasMemory& operator=(const BlasMemory&) = delete;

 private:
  static constexpr size_t kBytes = size_t{129} << 20;
  static inline std::atomic<int> running_ = 0, most_ = 0, waiting_ = 0;
  static inline std::mutex mutex_;
  static inline std::condition_variable ended_;
};

template <class T, class Gemm>
void call_gemm(Gemm function, int64_t rows, int64_t columns, int64_t depth, BlasMatrix<const T> a,
               BlasMatrix<const T> b, T beta, BlasMatrix<T> c) {
  const auto of = [](Transpose how) { return how == Transpose::no ? CblasNoTrans : CblasTrans; };
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  const BlasMemory memory;
  function(CblasRowMajor, of(a.how), of(b.how), number(rows), number(columns), number(depth), 1, a.data,
           number(a.stride), b.data, number(b.stride), beta, c.data, number(std::max<int64_t>(1, c.stride)));
}

}  // namespace

void load_blas(const Surroundings& around) { blas(around); }

std::string_view blas_kernels() { return blas().kernels; }

std::string_view better_blas_kernels(std::string_view chosen, const std::function<bool(std::string_view)>& has) {
  constexpr std::array kWide = {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"};
  constexpr std::array kOf256 = {"avx2", "fma"};
  constexpr std::array kOf512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"};
  if (chosen.empty() || std::ranges::find(kWide, chosen) != kWide.end()) return "";
  if (!std::ranges::all_of(kOf256, has)) return "";
  return std::ranges::all_of(kOf512, has) ? "SkylakeX" : "Haswell";
}

// True for kernels with 512-bit vectors. With 256-bit vectors, the last bit of an element depends on its position.
bool blas_rounds_alike() { return blas().kernels == "SkylakeX" || blas().kernels == "Cooperlake"; }

void gemm(int64_t rows, int64_t columns, int64_t depth, BlasMatrix<const float> a, BlasMatrix<const float> b,
          float beta, BlasMatrix<float> c) {
  call_gemm(blas().sgemm, rows, columns, depth, a, b, beta, c);
}

void gemm(int64_t rows, int64_t columns, int64_t depth, BlasMatrix<const double> a, BlasMatrix<const double> b,
          double beta, BlasMatrix<double> c) {
  call_gemm(blas().dgemm, rows, columns, depth, a, b, beta, c);
}

}  // namespace hctr::ops
