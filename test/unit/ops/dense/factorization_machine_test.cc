#include "ops/dense/factorization_machine.h"

#include <gtest/gtest.h>

#include "support/op_test.h"

namespace hctr::test {
namespace {

/// Reference: concatenates all vectors, sums over pairs of vectors one by one, and sums the weights.
void expect_machine(const auto& t, size_t slots, size_t dim) {
  const std::vector<double> x = t["x"], vectors = t["vectors"], weights = t["weights"];
  const size_t batch = t.size("vectors", 0), others = t.size("vectors", 1) / dim, more = t.size("weights", 1);
  std::vector<double> y, second, first;
  for (size_t b = 0; b < batch; ++b) {
    const size_t begin = y.size();
    double weight = 0, pairs = 0;
    for (size_t s = 0; s < slots; ++s) {
      const double* slot = x.data() + (b * slots + s) * (dim + 1);
      y.insert(y.end(), slot, slot + dim);
      weight += slot[dim];
    }
    y.insert(y.end(), vectors.data() + b * others * dim, vectors.data() + (b + 1) * others * dim);
    for (size_t j = 0; j < more; ++j) weight += weights[b * more + j];
    for (size_t i = 0; i < slots + others; ++i)
      for (size_t j = 0; j < i; ++j)
        for (size_t k = 0; k < dim; ++k) pairs += y[begin + i * dim + k] * y[begin + j * dim + k];
    second.push_back(pairs);
    first.push_back(weight);
  }
  t.expect("y", y);
  t.expect("second", second);
  t.expect("first", first);
}

void machine_cases(auto& test, int64_t slots, int64_t others, int64_t more, int64_t dim,
                   const std::vector<int64_t>& batches) {
  const auto inputs = [=](int64_t samples) {
    return std::vector<Input>{{"x", {samples * slots, dim + 1}, -1, 1},
                              {"vectors", {samples, others * dim}, -1, 1},
                              {"weights", {samples, more}, -1, 1}};
  };
  for (const int64_t samples : batches) test.row(cat(samples, " samples"), inputs(samples));
  test.rounding(Rounding::sum);
  const auto y = [=](Rig& t) { return t.out("y", {t["vectors"].dim(0), (slots + others) * dim}); };
  test.forward([=](Rig& t) {
    const Shape column{t["vectors"].dim(0), 1};
    ops::factorization_machine(t.ctx, t["x"], t["vectors"], t["weights"], y(t), t.out("second", column),
                               t.out("first", column));
  });
  test.backward([=](Rig& t) {
    ops::factorization_machine_backward(t.ctx, slots, dim, y(t), t.d("y"), t.d("second"), t.d("first"),
                                        {t.d("x"), t.d("vectors"), t.d("weights")});
  });
  test.expected([=](const auto& t) { expect_machine(t, static_cast<size_t>(slots), static_cast<size_t>(dim)); });
}

OP_TEST(FactorizationMachine) { machine_cases(*this, 26, 13, 13, 10, {21, 1, 0}); }
/// With an odd number of slots, some samples of two-byte elements do not begin at a multiple of 4 bytes.
OP_TEST(FactorizationMachineOfOddSlots) { machine_cases(*this, 25, 13, 13, 10, {21, 1}); }
/// OfWords: each vector is read by the maximum number of lanes of a warp. OfPairs: each vector is read by one lane.
OP_TEST(FactorizationMachineOfWords) { machine_cases(*this, 6, 2, 40, 32, {9}); }
OP_TEST(FactorizationMachineOfPairs) { machine_cases(*this, 40, 7, 1, 2, {19}); }
/// Rows of every tensor are a multiple of the pack size.
OP_TEST(FactorizationMachineOfPacks) { machine_cases(*this, 8, 3, 8, 16, {37, 8}); }
OP_TEST(FactorizationMachineOfOneSlot) { machine_cases(*this, 1, 1, 1, 3, {9}); }
/// The largest supported total width, first with the shortest vectors, then with the longest vectors.
OP_TEST(FactorizationMachineOfManySlots) { machine_cases(*this, 1000, 24, 5, 1, {5}); }
OP_TEST(FactorizationMachineOfLongVectors) { machine_cases(*this, 3, 1, 300, 256, {11}); }

}  // namespace
}  // namespace hctr::test
