// A test harness for operators. A test is a table of test cases. Each row of the table states the inputs of one case,
// which runs on every device and dtype, in several memory layouts.
//
// For each row the harness runs these checks:
//   by_hand         compares the CPU reference with values or identities in the test (expected)
//   cpu_f32, ...,   compares each device and dtype with the CPU reference in f64 on the same inputs; checks that the
//   cuda_bf16       operator writes all elements of outputs and nothing else; checks that a second run is bitwise
//                   equal: on a CPU with another number of threads, on a GPU recorded as a CUDA graph and replayed
//   gradient        compares backward with central differences of forward, in f64 on the CPU
// Rows marked as large have more elements than one launch has threads. Large rows run only with HCTR_TEST_LARGE=1.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/rig.h"
#include "support/tolerance.h"

namespace hctr::test {

class OpTest {
 public:
  using Run = std::function<void(Rig&)>;
  /// Compares reference results with given values.
  class ByHand {
   public:
    explicit ByHand(Rig& rig) : rig_(rig) {}
    std::vector<double> operator[](const std::string& name) const { return rig_.values(name); }
    void expect(const std::string& name, const std::vector<double>& values) const;
    size_t size(const std::string& name, int dimension) const { return static_cast<size_t>(rig_[name].dim(dimension)); }
    int rank(const std::string& name) const { return rig_[name].rank(); }
    const StepState& state() const { return rig_.state(); }

   private:
    Rig& rig_;
  };

  virtual ~OpTest() = default;
  virtual void define() = 0;
  void add_to_gtest(const char* name);

  // Called by define().

  void row(std::string name, std::vector<Input> inputs) {
    rows_.push_back({std::move(name), std::move(inputs), false});
  }
  void large(std::string name, std::vector<Input> inputs) {
    rows_.push_back({std::move(name), std::move(inputs), true});
  }
  void forward(Run run) { forward_ = std::move(run); }
  void backward(Run run) { backward_ = std::move(run); }
  void expected(std::function<void(const ByHand&)> check) { expected_ = std::move(check); }
  void state(const StepState& state) { state_ = state; }
  void rounding(Rounding rounding) { rounding_ = rounding; }
  /// The operator accepts dense tensors only.
  void dense_only() { dense_only_ = true; }
  /// Also runs the test cases with GEMMs in TF32 (cuda_tf32). Inputs are f32 values representable in TF32.
  void also_in_tf32() { also_in_tf32_ = true; }
  /// The operator accepts f32 only.
  void f32_only() { f32_only_ = true; }

 private:
  struct Row {
    std::string name;
    std::vector<Input> inputs;
    bool large;
  };
  void run(Rig&) const;
  void test_row(const Row&, Device, DType, bool tf32 = false) const;
  void test_by_hand(const Row&) const;
  void test_gradient(const Row&) const;
  Rig rig(const Row&, Device, DType, DType rounded_to, std::vector<RowLayout>, int threads = 4,
          bool tf32 = false) const;
  DType reference_dtype() const { return f32_only_ ? DType::f32 : DType::f64; }

  std::vector<Row> rows_;
  Run forward_, backward_;
  std::function<void(const ByHand&)> expected_;
  StepState state_{.step = 3,
                   .first_sample = 40,
                   .valid_samples = 1 << 20,
                   .global_samples = 1 << 20,
                   .learning_rate = 0.01f,
                   .loss_scale = 1};
  Rounding rounding_ = Rounding::element;
  bool dense_only_ = false, f32_only_ = false, also_in_tf32_ = false;
};

/// Registers every OP_TEST with GoogleTest. Called once by main().
void register_op_tests();

struct OpTestRegistration {
  OpTestRegistration(const char* name, OpTest* test);
};

}  // namespace hctr::test

#define OP_TEST(Name)                                                                         \
  struct Name##OpTest : ::hctr::test::OpTest {                                                \
    void define() override;                                                                   \
  };                                                                                          \
  static const ::hctr::test::OpTestRegistration Name##_registration(#Name, new Name##OpTest); \
  void Name##OpTest::define()
