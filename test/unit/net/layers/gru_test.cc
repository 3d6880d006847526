#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_run.h"

namespace hctr::test {
namespace {

const std::string kGru = R"({"type": "GRU", "gru_param": {"num_output": 3, "SeqLength": 4, "vector_size": 2}})";

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(GruLayer, HasWeightsForEveryGate) {
  EXPECT_EQ(spec_text(kGru, {{5, 4, 2}}), "[5,4,3] | input_weights [9,2] state_weights [9,3] bias [9]");
  EXPECT_EQ(spec_text(kGru, {{5, 8}}), "[5,4,3] | input_weights [9,2] state_weights [9,3] bias [9]");
  EXPECT_EQ(spec_text(kGru, {{20, 2}}), "[5,4,3] | input_weights [9,2] state_weights [9,3] bias [9]");
}

TEST(GruLayer, GoesThroughASequenceStepByStep) {
  const LayerRun run({kGru, {{5, 4, 2}}, -2, 2}, {});
  const auto &w = run.weights[0], &u = run.weights[1], &bias = run.weights[2];
  for (size_t b = 0; b < 5; ++b) {
    std::vector<double> h(3, 0);
    for (size_t t = 0; t < 4; ++t) {
      const double* x = run.in[0].data() + (b * 4 + t) * 2;
      const auto of_input = [&](size_t row) { return w[2 * row] * x[0] + w[2 * row + 1] * x[1] + bias[row]; };
      const auto of_state = [&](size_t row) {
        return u[3 * row] * h[0] + u[3 * row + 1] * h[1] + u[3 * row + 2] * h[2];
      };
      std::vector<double> next;
      for (size_t j = 0; j < 3; ++j) {
        const double r = sigmoid(of_input(j) + of_state(j)), z = sigmoid(of_input(3 + j) + of_state(3 + j));
        next.push_back((1 - z) * std::tanh(of_input(6 + j) + r * of_state(6 + j)) + z * h[j]);
      }
      h = next;
      for (size_t j = 0; j < 3; ++j)
        EXPECT_NEAR(run.out[0][(b * 4 + t) * 3 + j], h[j], 1e-12) << b << " " << t << " " << j;
    }
  }
}

TEST(GruLayer, HasGradientsThroughTime) {
  check_layer({kGru, {{5, 4, 2}}, -2, 2});
  check_layer({R"({"type": "GRU", "gru_param": {"num_output": 17, "SeqLength": 3, "vector_size": 5}})", {{4, 3, 5}}});
}

TEST(GruLayer, ReadsSequencesAsMatricesToo) {
  check_layer({kGru, {{5, 8}}});
  check_layer({kGru, {{20, 2}}});
  const LayerRun whole({kGru, {{5, 4, 2}}}, {}), rows({kGru, {{20, 2}}}, {});
  EXPECT_EQ(whole.out, rows.out);
  EXPECT_EQ(whole.d_in, rows.d_in);
}

TEST(GruLayer, OfOneStepForgetsNothing) {
  check_layer({R"({"type": "GRU", "gru_param": {"num_output": 3, "SeqLength": 1, "vector_size": 2}})", {{5, 2}}});
}

TEST(GruLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(kGru, {{5, 3, 2}}),
            "bottom: GRU takes sequences of 4 vectors of 2, as set by the layer's fields: expected a tensor [5,4,2], "
            "a matrix with a sequence in each row, or a matrix with a vector in each row; found shape [5,3,2]");
  EXPECT_EQ(complaint_of(kGru, {{18, 2}}),
            "gru_param/SeqLength: the 18 rows of the tensor of shape [18,2] are not whole sequences of 4");
}

}  // namespace
}  // namespace hctr::test
