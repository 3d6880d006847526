// Layers that only move elements.
#include "support/layer_run.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

TEST(SliceLayer, CutsAnyNumberOfRanges) {
  EXPECT_EQ(spec_text(R"({"type": "Slice", "ranges": [[0, 3], [2, 7], [2, 7]]})", {{4, 9}}), "[4,3] [4,5] [4,5]");
  EXPECT_EQ(spec_text(R"({"type": "Slice", "ranges": [[5, 6]]})", {{4, 9}}), "[4,1]");
  check_layer({R"({"type": "Slice", "ranges": [[0, 9], [0, 9]]})", {{4, 9}}});
  check_layer({R"({"type": "Slice", "ranges": [[4, 6], [0, 3], [2, 7], [2, 7], [6, 7], [1, 2]]})", {{4, 9}}});
}

TEST(SliceLayer, CutsTheSlotsOfThreeDimensions) {
  EXPECT_EQ(spec_text(R"({"type": "Slice", "ranges": [[0, 5], [5, 6]]})", {{4, 6, 3}}), "[4,5,3] [4,1,3]");
  check_layer({R"({"type": "Slice", "ranges": [[0, 5], [5, 6]]})", {{4, 6, 3}}});
  check_layer({R"({"type": "Slice", "ranges": [[4, 6], [1, 3], [2, 5]]})", {{4, 7, 4}}});
  const LayerRun run({R"({"type": "Slice", "ranges": [[1, 2]]})", {{1, 3, 2}}}, {});
  EXPECT_EQ(run.out[0], (std::vector<double>{run.in[0][2], run.in[0][3]}));
  EXPECT_EQ(run.d_in[0], (std::vector<double>{0, 0, run.d_out[0][0], run.d_out[0][1], 0, 0}));
}

TEST(SliceLayer, GivesUncoveredColumnsNoGradient) {
  const LayerRun run({R"({"type": "Slice", "ranges": [[1, 3], [2, 3]]})", {{1, 4}}}, {});
  EXPECT_EQ(run.d_in[0], (std::vector<double>{0, run.d_out[0][0], run.d_out[0][1] + run.d_out[1][0], 0}));
}

TEST(SliceLayer, SumsMoreGradientsThanOneCallOfAddTakes) {
  std::string ranges;
  for (int i = 0; i < 300; ++i) ranges += cat(i ? ", " : "", "[0, 2]");
  const LayerRun run({cat(R"({"type": "Slice", "ranges": [)", ranges, "]}"), {{1, 2}}}, {});
  double sum = 0;
  for (const auto& d : run.d_out) sum += d[0];
  EXPECT_NEAR(run.d_in[0][0], sum, 1e-9);
}

TEST(SliceLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "Slice", "ranges": [[0, 3], [2, 10]]})", {{4, 9}}),
            "ranges/1: columns [2,10) of a tensor of shape [4,9]: it has 9 columns, so a range ends at 9 at most");
  EXPECT_EQ(complaint_of(R"({"type": "Slice", "ranges": [[3, 3]]})", {{4, 9}}),
            "/ranges/0: [3,3) is not a range: expected begin of at least 0, and end greater than begin");
  EXPECT_EQ(complaint_of(R"({"type": "Slice", "ranges": [[-1, 3]]})", {{4, 9}}),
            "/ranges/0: [-1,3) is not a range: expected begin of at least 0, and end greater than begin");
  EXPECT_EQ(complaint_of(R"({"type": "Slice", "ranges": [[1, 2, 3]]})", {{4, 9}}),
            "/ranges/0: a range is [begin, end), two numbers; found 3");
  EXPECT_EQ(complaint_of(R"({"type": "Slice", "ranges": []})", {{4, 9}}),
            "/ranges: Slice needs at least one range [begin, end)");
  EXPECT_EQ(complaint_of(R"({"type": "Slice", "ranges": [[0, 10]]})", {{4, 9, 2}}),
            "ranges/0: slots [0,10) of a tensor of shape [4,9,2]: it has 9 slots, so a range ends at 9 at most");
  EXPECT_EQ(complaint_of(R"({"type": "Slice", "ranges": [[0, 1]]})", {{4, 9, 2, 2}}),
            "bottom: Slice takes a tensor of 2 dimensions, found shape [4,9,2,2]; add a Reshape before it");
}

TEST(ReshapeLayer, ChangesTheLengthOfRows) {
  EXPECT_EQ(spec_text(R"({"type": "Reshape"})", {{4, 6, 5}}), "[4,30]");
  EXPECT_EQ(spec_text(R"({"type": "Reshape", "leading_dim": 5})", {{4, 6, 5}}), "[24,5]");
  EXPECT_EQ(spec_text(R"({"type": "Reshape", "leading_dim": 5, "time_step": 3})", {{4, 6, 5}}), "[8,3,5]");
  EXPECT_EQ(spec_text(R"({"type": "Reshape", "leading_dim": 5, "time_step": 6})", {{24, 5}}), "[4,6,5]");
  check_layer({R"({"type": "Reshape"})", {{4, 6, 5}}});
}

TEST(ReshapeLayer, SelectsSlotsInAnyOrder) {
  EXPECT_EQ(spec_text(R"({"type": "Reshape", "selected": [5, 0, 5]})", {{4, 6, 5}}), "[4,15]");
  check_layer({R"({"type": "Reshape", "selected": [5, 0, 5]})", {{4, 6, 5}}});
  const LayerRun run({R"({"type": "Reshape", "selected": [2, 2]})", {{1, 3, 1}}}, {});
  EXPECT_EQ(run.out[0], (std::vector<double>{run.in[0][2], run.in[0][2]}));
  EXPECT_EQ(run.d_in[0], (std::vector<double>{0, 0, run.d_out[0][0] + run.d_out[0][1]}));
}

TEST(ReshapeLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "Reshape", "leading_dim": 7})", {{4, 6, 5}}),
            "leading_dim: a tensor of shape [4,6,5] cannot become rows of 7: leading_dim must be a multiple of its "
            "last dimension (5) and divide its 120 elements; a leading_dim that fits is 30: all of a row");
  EXPECT_EQ(complaint_of(R"({"type": "Reshape", "leading_dim": 5, "time_step": 7})", {{4, 6, 5}}),
            "leading_dim: a tensor of shape [4,6,5] cannot become 7 time steps of rows of 5: leading_dim must be a "
            "multiple of its last dimension (5) and time_step times leading_dim must divide its 120 elements; a "
            "leading_dim that fits is 5");
  EXPECT_EQ(complaint_of(R"({"type": "Reshape", "selected": [1, 6]})", {{4, 6, 5}}),
            "selected/1: slot 6 of a tensor of shape [4,6,5]: its slots are 0 to 5");
  EXPECT_EQ(complaint_of(R"({"type": "Reshape", "selected": [1]})", {{4, 6}}),
            "selected: \"selected\" needs a tensor [samples, slots, dim], such as an embedding's output, found "
            "shape [4,6]; use Slice to select columns of a matrix");
  EXPECT_EQ(complaint_of(R"({"type": "Reshape", "selected": []})", {{4, 6, 5}}),
            "/selected: selects no slot; name at least one");
  EXPECT_EQ(complaint_of(R"({"type": "Reshape", "selected": [-1]})", {{4, 6, 5}}),
            "/selected/0: expected an integer, at least 0 and at most 16777216, found the integer -1");
  EXPECT_EQ(complaint_of(R"({"type": "Reshape", "selected": [1], "time_step": 2})", {{4, 6, 5}}),
            "/time_step: cannot be combined with \"selected\"; remove one of the two");
}

TEST(CastLayer, IsTheIdentity) {
  check_layer({R"({"type": "Cast"})", {{4, 6}}});
  check_layer({R"({"type": "Cast"})", {{4, 6, 5}}});
}

TEST(ScaleLayer, RepeatsElementsOrRows) {
  EXPECT_EQ(spec_text(R"({"type": "Scale", "scale_param": {"axis": 0, "factor": 3}})", {{4, 6}}), "[4,18]");
  EXPECT_EQ(spec_text(R"({"type": "Scale", "scale_param": {"axis": 1, "factor": 3}})", {{4, 6}}), "[12,6]");
  for (const int axis : {0, 1})
    check_layer({cat(R"({"type": "Scale", "scale_param": {"axis": )", axis, R"(, "factor": 3}})"), {{4, 6}}});
  const LayerRun elements({R"({"type": "Scale", "scale_param": {"axis": 0, "factor": 2}})", {{1, 2}}}, {});
  EXPECT_EQ(elements.out[0],
            (std::vector<double>{elements.in[0][0], elements.in[0][0], elements.in[0][1], elements.in[0][1]}));
  const LayerRun rows({R"({"type": "Scale", "scale_param": {"axis": 1, "factor": 2}})", {{1, 2}}}, {});
  EXPECT_EQ(rows.out[0], (std::vector<double>{rows.in[0][0], rows.in[0][1], rows.in[0][0], rows.in[0][1]}));
}

TEST(ScaleLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "Scale", "scale_param": {"axis": 0}})", {{4, 6}}),
            "/scale_param: Scale needs \"factor\": number of times that each element or row appears in y");
  EXPECT_EQ(complaint_of(R"({"type": "Scale", "scale_param": {"axis": 2, "factor": 2}})", {{4, 6}}),
            "/scale_param/axis: expected an integer, at least 0 and at most 1, found the integer 2");
  EXPECT_EQ(complaint_of(R"({"type": "Scale", "scale_param": {"factor": 2}})", {{4, 6, 2}}),
            "bottom: Scale takes a tensor of 2 dimensions, found shape [4,6,2]; add a Reshape before it");
}

TEST(FusedReshapeConcatLayer, HasTheLastSlotInAnOutputOfItsOwn) {
  EXPECT_EQ(spec_text(R"({"type": "FusedReshapeConcat"})", {{4, 3, 2}, {4, 3, 5}}), "[8,7] [4,7]");
  EXPECT_EQ(spec_text(R"({"type": "FusedReshapeConcatGeneral"})", {{4, 3, 2}, {4, 3, 5}}), "[12,7]");
  check_layer({R"({"type": "FusedReshapeConcat"})", {{4, 3, 2}, {4, 3, 5}}});
  check_layer({R"({"type": "FusedReshapeConcatGeneral"})", {{4, 3, 2}, {4, 3, 5}, {4, 3, 1}}});
  const LayerRun run({R"({"type": "FusedReshapeConcat"})", {{1, 3, 1}, {1, 3, 1}}}, {});
  const auto &a = run.in[0], &b = run.in[1];
  EXPECT_EQ(run.out[0], (std::vector<double>{a[0], b[0], a[1], b[1]}));
  EXPECT_EQ(run.out[1], (std::vector<double>{a[2], b[2]}));
}

TEST(FusedReshapeConcatLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(
      complaint_of(R"({"type": "FusedReshapeConcat"})", {{4, 3, 2}, {4, 2, 5}}),
      "bottom/1: FusedReshapeConcat takes tensors with the same number of samples and of slots: the first has shape "
      "[4,3,2], this one [4,2,5]");
  EXPECT_EQ(complaint_of(R"({"type": "FusedReshapeConcatGeneral"})", {{4, 6}}),
            "bottom/0: FusedReshapeConcatGeneral takes tensors [samples, slots, dim], such as outputs of "
            "embeddings, found shape [4,6]");
  EXPECT_EQ(complaint_of(R"({"type": "FusedReshapeConcat"})", {{4, 1, 2}}),
            "bottom/0: FusedReshapeConcat needs at least two slots, a history and an item, but this tensor has shape "
            "[4,1,2]; use FusedReshapeConcatGeneral for one slot");
}

TEST(GatherLayer, TakesRowsInAnyOrder) {
  EXPECT_EQ(spec_text(R"({"type": "Gather", "indices": [3, 1, 3]})", {{4, 6}}), "[3,6]");
  check_layer({R"({"type": "Gather", "indices": [3, 1, 3]})", {{4, 6}}});
  check_layer({R"({"type": "Gather", "indices": [0]})", {{4, 2, 3}}});
  EXPECT_EQ(complaint_of(R"({"type": "Gather", "indices": [3, 4]})", {{4, 6}}),
            "indices/1: row 4 of a tensor of shape [4,6]: its rows are 0 to 3");
  EXPECT_EQ(complaint_of(R"({"type": "Gather", "indices": []})", {{4, 6}}),
            "/indices: names no row; at least one is needed");
}

TEST(ConcatLayer, ConcatenatesAnyNumber) {
  EXPECT_EQ(spec_text(R"({"type": "Concat"})", {{4, 6}, {4, 1}, {4, 2}, {4, 6}, {4, 1}, {4, 2}}), "[4,18]");
  EXPECT_EQ(spec_text(R"({"type": "Concat"})", {{4, 6}}), "[4,6]");
  EXPECT_EQ(spec_text(R"({"type": "Concat", "axis": 1})", {{4, 6, 5}, {4, 2, 5}}), "[4,8,5]");
  EXPECT_EQ(spec_text(R"({"type": "Concat", "axis": 2})", {{4, 6, 5}, {4, 6, 2}}), "[4,6,7]");
  check_layer({R"({"type": "Concat"})", {{4, 6}, {4, 1}, {4, 2}}});
  check_layer({R"({"type": "Concat", "axis": 1})", {{4, 6, 5}, {4, 2, 5}}});
  check_layer({R"({"type": "Concat", "axis": 2})", {{4, 3, 5}, {4, 3, 2}, {4, 3, 1}}});
}

TEST(ConcatLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "Concat"})", {{4, 6}, {5, 6}}),
            "bottom/1: Concat takes tensors with the same number of rows: the first has 4, this one 5");
  EXPECT_EQ(complaint_of(R"({"type": "Concat", "axis": 2})", {{4, 3, 5}, {4, 2, 5}}),
            "bottom/1: Concat along axis 2 takes tensors that agree in all other dimensions: the first has shape "
            "[4,3,5], this one [4,2,5]");
  EXPECT_EQ(complaint_of(R"({"type": "Concat"})", {{4, 3, 5}, {4, 6}}),
            "bottom/1: Concat along axis 1 takes tensors that agree in all other dimensions: the first has shape "
            "[4,3,5], this one [4,6]");
  EXPECT_EQ(complaint_of(R"({"type": "Concat", "axis": 2})", {{4, 3}, {4, 3}}),
            "axis: axis 2 of a tensor of shape [4,3]: axis must be 1 for matrices");
}

}  // namespace
}  // namespace hctr::test
