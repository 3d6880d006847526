// The solver section in the syntax of several versions.
#include "config/sections/solver_section.h"

#include <gtest/gtest.h>

#include "support/problems_text.h"

namespace hctr::test {
namespace {

struct ReadSolver {
  SolverSection section;
  std::string text;  ///< the result of problems_text()
};

ReadSolver read_solver(const std::string& fields) {
  Problems problems;
  ReadSolver r{solver_schema().parse(Json::parse("{\"batchsize\": 8" + fields + "}", "c.json"), "/solver", problems),
               ""};
  r.text = problems_text(problems);
  return r;
}

std::string effective(const ReadSolver& r) { return solver_schema().effective(r.section).text(); }

TEST(SolverSection, OtherSpellingsMeanTheSame) {
  const auto same = [](const std::string& other, const std::string& field) {
    const ReadSolver a = read_solver(other), b = read_solver(field);
    EXPECT_EQ(a.text, "") << other;
    EXPECT_EQ(effective(a), effective(b)) << other;
  };
  same(R"(, "i64_input_key": true)", R"(, "input_key_type": "I64")");
  same(R"(, "i64_input_key": false)", R"(, "input_key_type": "I32")");
  same(R"(, "i64_input_key": false, "input_key_type": "I32")", R"(, "input_key_type": "I32")");
  same(R"(, "use_mixed_precision": true, "scaler": 1024)", R"(, "mixed_precision": 1024)");
  same(R"(, "use_mixed_precision": true, "scaler": 1024, "mixed_precision": 1024)", R"(, "mixed_precision": 1024)");
  same(R"(, "use_mixed_precision": true)", R"(, "mixed_precision": true)");
  same(R"(, "use_mixed_precision": false)", "");
  same(R"(, "fp32_products": "tf32")", R"(, "enable_tf32_compute": true)");
  same(R"(, "fp32_products": "tf32", "enable_tf32_compute": true)", R"(, "enable_tf32_compute": true)");
  same(R"(, "fp32_products": "fp32")", "");
  same(R"(, "use_cuda_graph": false)", R"(, "cuda_graph": false)");
  same(R"(, "auc_threshold": 0.8)", R"(, "eval_metrics": ["AUC:0.8", "AverageLoss"])");
  same(R"(, "auc_threshold": 0.8, "eval_metrics": ["AverageLoss", "AUC"])",
       R"(, "eval_metrics": ["AverageLoss", "AUC:0.8"])");
}

TEST(SolverSection, EveryWordIsKnown) {
  const auto said = [](const std::string& field) { return read_solver(", " + field).text; };
  EXPECT_EQ(said(R"("early_stoping": {})"),
            "error /solver/early_stoping: solver has no field \"early_stoping\"; did you mean \"early_stopping\"?\n");
  EXPECT_EQ(said(R"("batch": 7)"),
            "error /solver/batch: solver has no field \"batch\"; --explain solver lists them all\n");
  EXPECT_EQ(said(R"("learning_rate": 0.1)"),
            "error /solver/learning_rate: \"learning_rate\" is not supported: this field belongs to the optimizer "
            "section\n");
  EXPECT_EQ(said(R"("is_dlrm": true)"),
            "note /solver/is_dlrm: \"is_dlrm\" is accepted and has no effect: the layers define the model\n");
  EXPECT_EQ(effective(read_solver(R"(, "vvgpu": [[0, 1], [2]])")), effective(read_solver(R"(, "gpu": [[0, 1], [2]])")));
}

TEST(SolverSection, SplitsFp32ProductsWhenAsked) {
  EXPECT_FALSE(read_solver("").section.tf32x3());
  const ReadSolver split = read_solver(R"(, "fp32_products": "tf32x3")");
  EXPECT_EQ(split.text, "");
  EXPECT_TRUE(split.section.tf32x3());
  EXPECT_NE(effective(split).find(R"("fp32_products":"tf32x3")"), std::string::npos) << effective(split);
  EXPECT_EQ(effective(read_solver("")).find("fp32_products"), std::string::npos) << "checkpoints of before go on";
  EXPECT_EQ(read_solver(R"(, "fp32_products": "tf32x3", "mixed_precision": "bf16")").text,
            "error /solver/fp32_products: fp32_products is for fp32 GEMMs, which mixed_precision replaces; keep one\n");
}

TEST(SolverSection, SearchesAlgorithmsOfRecordedSteps) {
  EXPECT_EQ(effective(read_solver(R"(, "algorithm_search": false)")), effective(read_solver("")));
  const ReadSolver search = read_solver(R"(, "use_algorithm_search": true, "algorithm_file": "kept")");
  EXPECT_EQ(search.text, "");
  EXPECT_EQ(search.section.algorithm_search, true);
  EXPECT_EQ(search.section.algorithm_file, "kept");
  EXPECT_EQ(read_solver(R"(, "algorithm_search": true, "cuda_graph": false)").text,
            "note /solver/algorithm_search: algorithm_search has no effect with \"cuda_graph\": false: only GEMMs of "
            "recorded steps are measured\n");
  EXPECT_EQ(read_solver(R"(, "algorithm_file": "kept")").text,
            "note /solver/algorithm_file: algorithm_file has no effect without algorithm_search\n");
}

TEST(SolverSection, SpellingsThatDisagreeAreAnError) {
  const auto differ = [](const std::string& spelling, const std::string& field) {
    return "error /solver/" + spelling + ": \"" + spelling + "\" and \"" + field +
           "\" are names of the same field and have different values; keep one\n";
  };
  EXPECT_EQ(read_solver(R"(, "i64_input_key": true, "input_key_type": "I32")").text,
            differ("i64_input_key", "input_key_type"));
  EXPECT_EQ(read_solver(R"(, "use_mixed_precision": true, "scaler": 256, "mixed_precision": 1024)").text,
            differ("use_mixed_precision", "mixed_precision"));
  for (const char* products : {"fp32", "tf32x3"})
    EXPECT_EQ(read_solver(cat(R"(, "enable_tf32_compute": true, "fp32_products": ")", products, "\"")).text,
              differ("enable_tf32_compute", "fp32_products"));
  EXPECT_EQ(read_solver(R"(, "use_mixed_precision": false, "mixed_precision": "bf16")").text,
            differ("use_mixed_precision", "mixed_precision"));
  EXPECT_EQ(read_solver(R"(, "auc_threshold": 0.8, "eval_metrics": ["AUC:0.7"])").text,
            differ("auc_threshold", "eval_metrics"));
  EXPECT_EQ(read_solver(R"(, "auc_threshold": 0.8, "eval_metrics": ["AverageLoss"])").text,
            "error /solver/auc_threshold: auc_threshold needs AUC in \"eval_metrics\"\n");
}

TEST(SolverSection, ALossScaleWithoutMixedPrecisionIsNoted) {
  EXPECT_EQ(read_solver(R"(, "scaler": 1024)").text,
            "note /solver/scaler: \"scaler\" is accepted and has no effect: \"use_mixed_precision\" is not true; "
            "set the loss scale as the value of \"mixed_precision\"\n");
}

TEST(SolverSection, OptimizerStatesBelongToModelFiles) {
  EXPECT_EQ(read_solver(R"(, "dense_opt_states_file": "a")").text,
            "error /solver/dense_opt_states_file: dense_opt_states_file needs \"dense_model_file\", the file of the "
            "weights\n");
  EXPECT_EQ(read_solver(R"(, "sparse_model_file": "m", "sparse_opt_states_file": ["a", "b"])").text,
            "error /solver/sparse_opt_states_file: names 2 files for 1 of \"sparse_model_file\"; expected one file of "
            "states for each\n");
  for (const char* empty : {"\"\"", "[]", "[\"\"]"})
    EXPECT_EQ(read_solver(std::string(R"(, "dense_opt_states_file": "", "sparse_opt_states_file": )") + empty).text,
              "");
  EXPECT_EQ(read_solver(R"(, "dense_model_file": "m", "dense_opt_states_file": "a")").text, "");
}

}  // namespace
}  // namespace hctr::test
