#include "support/op_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "core/device/program.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

struct Registered {
  const char* name;
  std::unique_ptr<OpTest> test;
};
std::vector<Registered>& registered() {
  static std::vector<Registered> tests;
  return tests;
}

/// The memory layouts for a test case; fewer if the case is large. In the last layout dense and strided tensors
/// alternate.
std::vector<std::vector<RowLayout>> layouts(bool dense_only, bool large) {
  const RowLayout dense{"dense"}, odd{"dense at an odd address", 1, 0, 1}, padded{"padded", 16, 16, 0},
      ragged{"padded oddly", 1, 3, 1};
  if (dense_only) return {{dense}, {odd}};
  if (large) return {{dense}, {ragged}};
  return {{dense}, {odd}, {padded}, {ragged}, {dense, padded}};
}

std::string layout_name(const std::vector<RowLayout>& layouts) {
  std::string name;
  for (const RowLayout& layout : layouts) name += cat(name.empty() ? "" : " and ", layout.name);
  return name;
}

void compare_values(const std::string& name, const std::vector<double>& actual, const std::vector<double>& expected,
                    Tolerance tolerance) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  double largest = 0;
  for (const double value : expected)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  int reported = 0;
  for (size_t i = 0; i < actual.size() && reported < 3; ++i) {
    if (std::isnan(expected[i]) ? std::isnan(actual[i]) : actual[i] == expected[i]) continue;
    const double allowed = tolerance.relative * std::abs(expected[i]) + tolerance.of_largest * largest;
    if (std::abs(actual[i] - expected[i]) <= allowed) continue;
    ++reported;
    ADD_FAILURE() << name << "[" << i << "] is " << actual[i] << ", expected " << expected[i] << " within " << allowed;
  }
}

/// A GoogleTest test that calls a function.
class FunctionTest : public ::testing::Test {
 public:
  explicit FunctionTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

void add_test(const char* suite, std::string name, std::function<void()> body) {
  std::replace(name.begin(), name.end(), ' ', '_');
  ::testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [body = std::move(body)]() -> ::testing::Test* { return new FunctionTest(body); });
}

/// Whether a test case with these inputs is too slow under sanitizers. Smaller cases cover the same code.
bool slow_to_sanitize(const std::vector<Input>& inputs) {
  int64_t elements = 0;
  for (const Input& input : inputs) elements += input.shape.elements();
  return kSanitized && elements > 20'000;
}

bool large_rows_wanted() {
  const char* value = std::getenv("HCTR_TEST_LARGE");
  return value && std::string(value) == "1";
}

}  // namespace

OpTestRegistration::OpTestRegistration(const char* name, OpTest* test) {
  registered().push_back({name, std::unique_ptr<OpTest>(test)});
}

void register_op_tests() {
  for (const Registered& each : registered()) {
    each.test->define();
    each.test->add_to_gtest(each.name);
  }
}

void OpTest::add_to_gtest(const char* name) {
  const bool has_fast_rows = std::any_of(rows_.begin(), rows_.end(),
                                         [](const Row& row) { return !row.large && !slow_to_sanitize(row.inputs); });
  for (const Row& row : rows_) {
    const auto add = [&](const std::string& what, const std::function<void()>& body) {
      add_test(name, row.name + "/" + what, [body, is_large = row.large] {
        if (is_large && !large_rows_wanted()) GTEST_SKIP() << "large: set HCTR_TEST_LARGE=1";
        body();
      });
    };
    // Sanitizers run large test cases only in fp32, and in fp64 for the reference. Smaller cases cover the other
    // dtypes.
    const bool in_short = has_fast_rows && slow_to_sanitize(row.inputs);
    if (expected_ && !in_short) add("by_hand", [this, &row] { test_by_hand(row); });
    if (backward_ && !row.large && !in_short) add("gradient", [this, &row] { test_gradient(row); });
    for (const Device device : {kCpu, kGpu})
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        if (f32_only_ && dtype != DType::f32) continue;
        if (kSanitized && dtype == DType::bf16) continue;  // f16 covers this code
        if (in_short && dtype == DType::f16) continue;
        add(cat(device.is_cuda() ? "cuda" : "cpu", "_", name_of(dtype)), [this, &row, device, dtype] {
          if (device.is_cuda()) HCTR_SKIP_WITHOUT_GPU();
          test_row(row, device, dtype);
        });
      }
    if (also_in_tf32_)
      add("cuda_tf32", [this, &row] {
        HCTR_SKIP_WITHOUT_GPU();
        test_row(row, kGpu, DType::f32, true);
      });
  }
}

Rig OpTest::rig(const Row& row, Device device, DType dtype, DType rounded_to, std::vector<RowLayout> layouts,
                int threads, bool tf32) const {
  return Rig({device, dtype, rounded_to, std::move(layouts), threads, row.inputs, state_, tf32});
}

void OpTest::run(Rig& rig) const {
  forward_(rig);
  if (backward_) backward_(rig);
}

void OpTest::test_row(const Row& row, Device device, DType dtype, bool tf32) const {
  // TF32 represents f16 values exactly, because it has as many mantissa bits and a larger range
  const DType values = tf32 ? DType::f16 : dtype;
  Rig reference = rig(row, kCpu, reference_dtype(), values, {{"dense"}});
  run(reference);
  reference.fetch();
  for (const std::vector<RowLayout>& layouts : layouts(dense_only_, row.large || slow_to_sanitize(row.inputs))) {
    SCOPED_TRACE("tensors " + layout_name(layouts));
    Rig first = rig(row, device, dtype, values, layouts, 4, tf32);
    run(first);
    for (const std::string& complaint : first.fetch()) ADD_FAILURE() << complaint;
    for (const std::string& name : first.written())
      compare_values(name, first.values(name), reference.values(name), tolerance(first.dtype_of(name), rounding_));

    Rig second = rig(row, device, dtype, values, layouts, 1, tf32);
    if (device.is_cuda()) {
      run(second);  // first run: allocates tensors and selects algorithms, which a graph capture forbids
      second.restore();
      Program recorded(second.ctx.stream(), true, [&] { run(second); });
      recorded.run();
    } else {
      run(second);
    }
    second.fetch();
    for (const std::string& name : first.written())
      EXPECT_TRUE(first.bytes(name) == second.bytes(name))
          << name << " differs in a second run, " << (device.is_cuda() ? "recorded as a graph" : "with one thread");
    if (::testing::Test::HasFailure()) return;
  }
}

void OpTest::test_by_hand(const Row& row) const {
  Rig reference = rig(row, kCpu, reference_dtype(), DType::f32, {{"dense"}});
  run(reference);
  reference.fetch();
  expected_(ByHand(reference));
}

void OpTest::ByHand::expect(const std::string& name, const std::vector<double>& values) const {
  compare_values(name, rig_.values(name), values, tolerance(rig_.dtype_of(name), Rounding::sum));
}

void OpTest::test_gradient(const Row& row) const {
  Rig whole = rig(row, kCpu, DType::f64, DType::f32, {{"dense"}});
  run(whole);
  whole.fetch();
  const auto objective = [&](const std::string& input, size_t element, double delta) {
    Rig rig = this->rig(row, kCpu, DType::f64, DType::f32, {{"dense"}});
    rig.perturb(input, element, delta);
    forward_(rig);
    rig.fetch();
    double sum = 0;
    for (const auto& [name, gradient] : whole.output_gradients()) {
      const std::vector<double> values = rig.values(name);
      for (size_t i = 0; i < values.size(); ++i) sum += gradient[i] * values[i];
    }
    return sum;
  };
  ASSERT_FALSE(whole.inputs_with_gradients().empty());
  for (const std::string& input : whole.inputs_with_gradients()) {
    const std::vector<double> gradient = whole.values("d_" + input);
    constexpr size_t kMost = kSanitized ? 4 : 24;  // number of checked elements, spread over the tensor
    constexpr double kDelta = 1e-5;
    for (size_t n = 0; n < std::min(kMost, gradient.size()); ++n) {
      const size_t i = gradient.size() <= kMost ? n : n * (gradient.size() - 1) / (kMost - 1);
      const double above = objective(input, i, kDelta), below = objective(input, i, -kDelta);
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kDelta), 1e-6 * std::max(1.0, std::abs(gradient[i])))
          << "d_" << input << "[" << i << "]; objectives " << above << " and " << below;
    }
  }
}

}  // namespace hctr::test
