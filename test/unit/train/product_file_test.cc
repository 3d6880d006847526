#include "train/product_file.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/files.h"
#include "core/comm/self_comm.h"
#include "core/device/buffer.h"
#include "core/device/program.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "support/test_log.h"
#include "train/product_choice.h"

namespace hctr::test {
namespace {

ops::ProductAlgorithms two_products() {
  ops::ProductKey a{}, b{};
  ops::ProductAlgorithm of_a{}, of_b{};
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<int64_t>(i) - 3;
    b[i] = int64_t{1} << (3 * i);
  }
  for (size_t i = 0; i < of_a.size(); ++i) of_b[i] = ~(of_a[i] = 0x123456789abcdef0u * (i + 1));
  return {{a, of_a}, {b, of_b}};
}

TEST(ProductFile, IsReadAsItWasWritten) {
  EXPECT_EQ(products_of_text(product_text("a GPU, cuBLASLt 1", two_products()), "a GPU, cuBLASLt 1"), two_products());
  EXPECT_TRUE(products_of_text(product_text("a GPU", {}), "a GPU").empty());
}

TEST(ProductFile, OfAnotherDeviceIsNotRead) {
  const std::string text = product_text("a GPU, cuBLASLt 1", two_products());
  EXPECT_EQ(message_of(Kind::data, [&] { products_of_text(text, "a GPU, cuBLASLt 2"); }),
            "it is of a GPU, cuBLASLt 1, but this is a GPU, cuBLASLt 2");
}

TEST(ProductFile, WithAnyChangedOrMissingByteIsNotRead) {
  const std::string text = product_text("a GPU", two_products());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_THROW(products_of_text(changed, "a GPU"), Error) << i;
    EXPECT_THROW(products_of_text(text.substr(0, i), "a GPU"), Error) << i;
  }
  EXPECT_THROW(products_of_text(text + "\n", "a GPU"), Error);
  EXPECT_EQ(message_of(Kind::data, [] { products_of_text("{}", "a GPU"); }),
            "the file does not contain GEMM "
            "algorithms");
}

TEST(ProductFile, LiesInTheCacheOfTheUser) {
  const auto only = [](std::string variable, std::string value) -> Environment {
    return [=](const char* name) { return name == variable ? std::optional(value) : std::nullopt; };
  };
  const Environment cache = only("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(product_cache_path("a GPU", cache).parent_path(), "/cache/huge_ctr");
  EXPECT_NE(product_cache_path("a GPU", cache), product_cache_path("another GPU", cache));
  EXPECT_EQ(product_cache_path("a GPU", only("HOME", "/me")).parent_path(), "/me/.cache/huge_ctr");
  EXPECT_EQ(product_cache_path("a GPU", {}), "") << "without an environment nothing is kept";
}

TEST(ProductChoice, DoesNothingOnTheCpu) {
  Runtime runtime(kCpu, {.threads = 1});
  SelfComm comm;
  EXPECT_EQ(choose_product_algorithms(runtime, comm, "/nowhere/file", "text", {}, Log::silent()), "");
}

/// Two library GEMMs, recorded like a step. One GEMM adds a matrix.
class RecordedProduct {
 public:
  explicit RecordedProduct(Runtime& runtime) : runtime_(runtime), memory_(runtime.device(), 4 * kBytes) { record(); }
  void record() {
    const auto at = [&](int i) {
      return Tensor(memory_.data() + static_cast<size_t>(i) * kBytes, TensorSpec(DType::f32, {kSize, kSize}),
                    runtime_.device());
    };
    Context ctx(runtime_, runtime_.compute_stream());
    Program(runtime_.compute_stream(), true, [&] {
      ops::matmul(ctx, at(0), ops::Transpose::no, at(1), ops::Transpose::yes, at(2));
      ops::matmul_plus(ctx, at(0), ops::Transpose::no, at(1), ops::Transpose::yes, at(2), at(3));
    }).run();
    runtime_.compute_stream().synchronize();
  }

 private:
  static constexpr int64_t kSize = 256;
  static constexpr size_t kBytes = sizeof(float) * kSize * kSize;
  Runtime& runtime_;
  Buffer memory_;
};

TEST(ProductChoice, IsMeasuredOnceAndThenReadFromTheFile) {
  HCTR_SKIP_WITHOUT_GPU();
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "made" / "products.txt";
  SelfComm comm;
  const auto choose = [&](const std::string& from_checkpoint, const Log& log) {
    Runtime runtime(kGpu, {.threads = 1});
    RecordedProduct product(runtime);
    std::string text = choose_product_algorithms(runtime, comm, file, from_checkpoint, {}, log);
    product.record();
    return text;
  };
  const std::string first = choose("", Log::silent());
  EXPECT_EQ(read_text(file, "file"), first);
  EXPECT_EQ(choose("", Log::silent()), first);
  fs::remove(file);
  EXPECT_EQ(choose(first, Log::silent()), first);
  EXPECT_FALSE(fs::exists(file)) << "nothing was measured";
  write_text(file, "broken");
  TestLog log;
  log.expect("the file does not contain GEMM algorithms; measuring GEMMs again");
  choose("", log.log());
  EXPECT_NE(read_text(file, "file"), "broken");
}

}  // namespace
}  // namespace hctr::test
