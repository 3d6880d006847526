// --check predicts the memory of a model, and the FLOPs and bytes that a profile counts.
#include "train/memory_bill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/device/profiler.h"
#include "score/scorer.h"
#include "train/check_report.h"
#include "train/exchange_forecast.h"
#include "train/known_gpus.h"
#include "train/step_forecast.h"
#include "train/step_pipeline.h"
#include "unit/train/one_table.h"

namespace hctr::test {
namespace {

const char* const kDense = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "fc1", "fc_param": {"num_output": 24}},
  {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
  {"type": "Concat", "bottom": ["relu1", "dense"], "top": "both"},
  {"type": "InnerProduct", "bottom": "both", "top": "fc2", "fc_param": {"num_output": 1}},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"})";

Config with_table(const std::string& hparam, const std::string& type = "LocalizedSlotSparseEmbeddingHash") {
  return one_table(64, R"("type": "Adam", "adam_hparam": {"learning_rate": 1})",
                   R"("type": ")" + type +
                       R"(", "sparse_embedding_hparam": {"embedding_vec_size": 16, "combiner": "sum")" + hparam + "}");
}

int64_t part_of(const MemoryBill::Parts& parts, const std::string& name) {
  for (const auto& [own, bytes] : parts)
    if (own == name) return bytes;
  ADD_FAILURE() << "no part " << name;
  return 0;
}

TEST(MemoryBill, CountsTheRowsThatATableCanHave) {
  const std::string most = std::to_string(kMostRows);
  const MemoryBill bill = memory_bill(with_table(R"(, "max_vocabulary_size_per_gpu": )" + most), 1, {});
  const int64_t bytes = part_of(bill.gpus[0], "rows of table table");
  EXPECT_GT(bytes, kMostRows * 16 * 4 * 3);
  for (const char* more :
       {R"(, "vocabulary_size": 281474976710656)", R"(, "workspace_size_per_gpu_in_mb": 1073741824)"})
    EXPECT_EQ(part_of(memory_bill(with_table(more), 1, {}).gpus[0], "rows of table table"), bytes) << more;
  for (const char* field : {"max_vocabulary_size_per_gpu", "vocabulary_size", "workspace_size_per_gpu_in_mb"}) {
    try {
      with_table(cat(R"(, ")", field, R"(": 4611686018427387904)"));
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(cat(field, ": expected ")), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("and at most "), std::string::npos) << error.what();
    }
  }
}

TEST(MemoryBill, SaysWhatGoesToTheDisk) {
  Config config = with_table(R"(, "slot_size_array": [5000000, 3000000], "index": "hash")");
  config.solver.table_memory.host = {MemorySize::Kind::bytes, int64_t{1} << 30, 0, "1GiB"};
  CheckReport report;
  report.memory = memory_bill(config, 1, {});
  EXPECT_TRUE(report.memory.budgets.empty());
  EXPECT_EQ(text_of(report).find("disk"), std::string::npos);
  config.solver.table_memory.disk = "/fast/rows";
  report.memory = memory_bill(config, 1, {});
  EXPECT_NE(text_of(report).find("Rows when training on the CPU: 0.75 GiB in memory, "), std::string::npos)
      << text_of(report);
  EXPECT_EQ(text_of(report).find("on a GPU: "), std::string::npos) << "how much that has is not known";
  EXPECT_NE(text_of(report).find(" GiB on disk in '/fast/rows'; up to 85 bytes of memory for each row on disk"),
            std::string::npos)
      << text_of(report);
  config.solver.table_memory.disk_limit = {MemorySize::Kind::bytes, 1 << 20, 0, "1MiB"};
  report.memory = memory_bill(config, 1, {});
  EXPECT_NE(text_of(report).find("\"disk_limit\" allows only < 0.01 GiB, and about "), std::string::npos)
      << text_of(report);
  const std::vector<std::string> small = budgets_too_small(report.memory, {});
  ASSERT_EQ(small.size(), 1u);
  EXPECT_TRUE(small[0].starts_with("Rows when training on the CPU: ")) << small[0];
  EXPECT_NE(small[0].find(" GiB per rank are needed"), std::string::npos) << small[0];
  config.solver.table_memory.gpu = {MemorySize::Kind::bytes, int64_t{1} << 29, 0, "512MiB"};
  report.memory = memory_bill(config, 1, {});
  // 8 million rows with 192 bytes of vector and states, 50 bytes of key, index and marks, and an access count each.
  // 1.25 GiB hold 69 % of the rows.
  EXPECT_NE(text_of(report).find("Rows when training on a GPU: 0.50 GiB on the GPU (0.26 of them keys, index and "
                                 "statistics), 0.75 GiB in memory of the host, 0.44 GiB on disk"),
            std::string::npos)
      << text_of(report);
  // A table's own budget overrides the solver's budget.
  config.embeddings[0].section.table_memory = OwnTableMemory{.disk = "/own"};
  report.memory = memory_bill(config, 1, {});
  ASSERT_EQ(report.memory.budgets.size(), 1u);
  EXPECT_NE(text_of(report).find(" GiB on disk in '/own'"), std::string::npos) << text_of(report);
  config.embeddings[0].section.table_memory->disk = "";
  config.solver.table_memory.gpu = {};
  EXPECT_TRUE(memory_bill(config, 1, {}).budgets.empty());
}

TEST(MemoryBill, TablesThatShareAMemoryHavePartsOfIt) {
  const auto half = [](bool own) {
    Config config = with_table(R"(, "slot_size_array": [5000000, 3000000], "index": "hash")");
    config.solver.table_memory.gpu = {MemorySize::Kind::bytes, int64_t{1} << 30, 0, "1GiB"};
    config.solver.table_memory.host = {MemorySize::Kind::bytes, int64_t{1} << 33, 0, "8GiB"};
    CheckReport report;
    report.memory = memory_bill(config, 1, {});
    // Adds a second table like the first. With `own`, the second table does not share the device budget.
    MemoryBill::Budget second = report.memory.budgets.at(0);
    second.tables = {"other"};
    second.shared.device = !own;
    report.memory.budgets.push_back(second);
    report.memory.rows[0]["other"] = report.memory.rows[0].at("table");
    return text_of(report);
  };
  for (const char* table : {"table", "other"}) {
    EXPECT_NE(half(false).find(cat("Rows of ", table, " when training on a GPU: 0.50 GiB on the GPU")),
              std::string::npos);
    EXPECT_NE(half(true).find(cat("Rows of ", table, " when training on a GPU: 1.00 GiB on the GPU")),
              std::string::npos);
  }
}

TEST(MemoryBill, SaysWhatABudgetOfTheGpuHolds) {
  Config config = with_table(R"(, "slot_size_array": [5000000, 3000000], "index": "hash")");
  config.solver.table_memory.gpu = {MemorySize::Kind::bytes, int64_t{1} << 30, 0, "1GiB"};
  CheckReport report;
  report.memory = memory_bill(config, 1, {});
  EXPECT_EQ(text_of(report).find("Rows when training on"), std::string::npos) << "what the host has is not known";
  config.solver.table_memory.host = {MemorySize::Kind::bytes, int64_t{1} << 30, 0, "1GiB"};
  report.memory = memory_bill(config, 1, {});
  EXPECT_NE(text_of(report).find("Rows when training on a GPU: 1.00 GiB on the GPU (0.38 of them keys, index and "
                                 "statistics), 0.81 GiB in memory of the host\n"),
            std::string::npos)
      << text_of(report);
  EXPECT_EQ(text_of(report).find("disk"), std::string::npos);
  config.solver.table_memory.gpu.bytes = int64_t{1} << 28;
  report.memory = memory_bill(config, 1, {});
  EXPECT_NE(text_of(report).find("0.25 GiB on the GPU (0.25 of them keys, index and statistics), 0.94 GiB in "
                                 "memory of the host; 0.49 GiB of rows do not fit: \"host\" needs about "),
            std::string::npos)
      << text_of(report);
}

TEST(MemoryBill, ActivationsAreThoseOfTheModelAndWeightsNearly) {
  TinyModel tiny(config_of(kDense));
  const MemoryBill bill = memory_bill(tiny.config, 1, {});
  ASSERT_EQ(bill.gpus.size(), 1u);
  std::map<std::string, int64_t> in_model;
  for (const auto& [name, bytes] : tiny.model.memory_parts()) in_model[name] = bytes;
  for (const char* name : {"activations in training", "activations in evaluation"})
    EXPECT_EQ(part_of(bill.gpus[0], name), in_model.at(name)) << name;
  // The model has (3 + 1) * 24 + 27 + 1 weights. In memory, weights begin at multiples of 256 bytes.
  EXPECT_EQ(part_of(bill.gpus[0], "dense weights"), 4 * 124);
  EXPECT_GE(in_model.at("dense weights"), 4 * 124);
  EXPECT_EQ(part_of(bill.gpus[0], "optimizer states of weights"), 0);  // SGD has no states
}

TEST(MemoryBill, CountsCopiesOfWeights) {
  const auto bytes = [](const char* solver) {
    return part_of(memory_bill(config_of(kDense, 1, solver), 1, {}).gpus[0], "dense weights");
  };
  EXPECT_EQ(bytes(R"(, "mixed_precision": "bf16")"), 6 * 124);
  EXPECT_EQ(bytes(R"(, "fp32_products": "tf32")"), 4 * 124 + 24 * 4 * 4)
      << "24 rows of 3 and a zero, of the layer that has a ReLU";
}

TEST(MemoryBill, RowsAreThoseOfTheSlotsOrTheStatedOnesOrCounted) {
  // bytes per row. numbers: 16 elements of the vector and of two Adam states; index: key and hash index
  const int64_t numbers = 3 * 16 * 4, index = 24;
  const Config sized = with_table(R"(, "slot_size_array": [1000, 3000], "index": "direct")");
  EXPECT_EQ(part_of(memory_bill(sized, 1, {}).gpus[0], "rows of table table"), 4000 * numbers);
  EXPECT_EQ(part_of(memory_bill(sized, 1, {}).gpus[0], "gradients of weights"), 4 * 33);
  EXPECT_EQ(part_of(memory_bill(sized, 1, {}).gpus[0], "optimizer states of weights"), 2 * 4 * 33);
  const MemoryBill two = memory_bill(sized, 2, {});
  ASSERT_EQ(two.gpus.size(), 2u);
  EXPECT_EQ(part_of(two.gpus[0], "rows of table table") + part_of(two.gpus[1], "rows of table table"), 4000 * numbers);

  const Config stated = with_table(R"(, "max_vocabulary_size_per_gpu": 500)");
  EXPECT_EQ(part_of(memory_bill(stated, 1, {}).gpus[0], "rows of table table"), 500 * (numbers + index));
  EXPECT_EQ(part_of(memory_bill(stated, 1, {{700, 200}}).gpus[0], "rows of table table"), 900 * (numbers + index));

  const Config unknown = with_table("");
  const MemoryBill bill = memory_bill(unknown, 1, {});
  ASSERT_EQ(bill.bytes_of_unknown_rows.size(), 1u);
  EXPECT_EQ(bill.bytes_of_unknown_rows[0].second, numbers + index);
  EXPECT_TRUE(memory_bill(unknown, 1, {{700, 200}}).bytes_of_unknown_rows.empty());

  // A growing table starts with capacity for four batches of 2 keys for 64 samples: 512 rows. Then the capacity grows
  // by half.
  EXPECT_EQ(part_of(bill.gpus[0], "memory for new rows"), 512 * (numbers + index));
  EXPECT_EQ(part_of(memory_bill(unknown, 1, {{300, 100}}).gpus[0], "memory for new rows"),
            (512 + 256 - 400) * (numbers + index));
  EXPECT_EQ(part_of(memory_bill(stated, 1, {}).gpus[0], "memory for new rows"), 12 * (numbers + index));
  EXPECT_EQ(part_of(memory_bill(sized, 1, {}).gpus[0], "memory for new rows"), 0);
}

/// There are two ranks. Each sends 2 keys for each of its 32 samples, and receives the 64 vectors of these keys. As an
/// owner it receives one key for each of the 64 samples of both ranks. The bill counts three buffers of sent vectors
/// and one of received vectors, with lists and messages. Training also has buffers that sum gradients.
TEST(MemoryBill, OnSeveralHostsWhatTravelsBetweenThemIsThereToo) {
  const int64_t keys = 2 * 32, vector = 16 * 4;
  CheckReport report;
  report.memory = memory_bill(with_table(R"(, "slot_size_array": [1000, 3000], "index": "direct")"), 2, {});
  const auto both = [&](int64_t ring) { return keys * (4 * vector + 4 * ring * (4 + 2) + 60 + 12 + 2 * 16); };
  const int64_t ring = StepPipeline::kBuffers, sums = 4 * ring * (3 + 1) + ring + 16 + 16 / 4;
  const int64_t training = both(ring) + keys * sums, evaluation = both(Scorer::kBuffers);
  EXPECT_EQ(report.memory.between_hosts, std::vector<int64_t>(2, training + evaluation));
  EXPECT_EQ(text_of(report).find("several hosts"), std::string::npos);
  report.processes = 2;
  EXPECT_NE(text_of(report).find("On several hosts up to < 0.01 more GiB on each GPU"), std::string::npos)
      << text_of(report);
}

TEST(MemoryBill, ASmallerBatchOfEachGpuNeedsLess) {
  const Config config = with_table(R"(, "max_vocabulary_size_per_gpu": 500)");
  const MemoryBill one = memory_bill(config, 1, {}), four = memory_bill(config, 4, {});
  EXPECT_LT(part_of(four.gpus[0], "activations in training"), part_of(one.gpus[0], "activations in training"));
  EXPECT_GT(part_of(four.gpus[0], "exchange between ranks"), 0);
}

TEST(StepWork, CountsWhatAProfileCounts) {
  TinyModel tiny(config_of(kDense));
  Profiler profiler(tiny.runtime);
  profiler.start();
  tiny.train();
  profiler.stop();
  std::map<std::string, Work> counted;
  for (const Span& span : profiler.spans()) counted[cat(span.part, " ", span.name)] = span.work;
  int compared = 0;
  for (const PartWork& part : work_of_dense_layers(tiny.config, 8)) {
    const std::string name = cat(part.part, " ", part.name);
    ASSERT_TRUE(counted.contains(name)) << name;
    EXPECT_DOUBLE_EQ(part.work.flops, counted[name].flops) << name;
    EXPECT_DOUBLE_EQ(part.work.bytes, counted[name].bytes) << name;
    compared += part.work.flops > 0;
  }
  // Four parts are compared: the forward pass of both layers, the wgrad of fc1, and the backward pass of fc2. fc1 has
  // no dgrad. The backward pass of fc2 includes its wgrad, because fc2 has one output.
  EXPECT_EQ(compared, 4);
}

TEST(StepWork, DistinctKeysAreThoseOfThePowerLaw) {
  for (const auto& [draws, rows] : {std::pair(100.0, int64_t{50}), {1000.0, 3000}, {20000.0, 400000}}) {
    double sum = 0, distinct = 0;
    for (int64_t row = 1; row <= rows; ++row) sum += std::pow(static_cast<double>(row), -1.05);
    for (int64_t row = 1; row <= rows; ++row)
      distinct += 1 - std::pow(1 - std::pow(static_cast<double>(row), -1.05) / sum, draws);
    EXPECT_NEAR(expected_distinct(draws, rows), distinct, 0.005 * distinct) << draws << " of " << rows;
  }
  EXPECT_EQ(expected_distinct(100, 0), 0);
  EXPECT_LE(expected_distinct(1, 10), 1);
}

TEST(StepForecast, TakesTheLongerOfBytesAndProductsAndGrowsWithTheBatch) {
  const Config config = with_table(R"(, "slot_size_array": [1000, 3000])");
  const Ceilings slow_copy = {.copy_bytes = 1e9, .product_flops = 1e15},
                 slow_product = {.copy_bytes = 1e15, .product_flops = 1e9};
  const auto step_at = [&](const Ceilings& ceilings, int64_t samples) {
    const StepForecast step = forecast_step(config, samples, ceilings, assumed_keys(config, samples));
    double sum = 0;
    for (const auto& part : step.parts) sum += part.seconds;
    EXPECT_NEAR(step.seconds, sum, 1e-12);
    return step;
  };
  EXPECT_GT(step_at(slow_copy, 64).tables, 0.0);
  // GEMMs of [samples, 32] and [32, 1]: forward, dgrad and wgrad, each with 64 FLOP per sample.
  EXPECT_NEAR(step_at(slow_product, 1000).layers, 3 * 64 * 1000 / 1e9 / 0.75, 1e-6);
  EXPECT_GT(step_at(slow_copy, 4096).seconds, 2 * step_at(slow_copy, 1024).seconds);
}

TEST(ExchangeForecast, IsWhatFourGpusSendOverTheirLinks) {
  const Config config = with_table(R"(, "slot_size_array": [1000, 3000])");
  const KnownGpu gpu = *find_known_gpu("H200");
  const auto exchange_of = [&](int64_t ranks, double backward) {
    StepForecast step;
    step.parts.push_back({{"backward", "InnerProduct", "fc", {}}, backward});
    return forecast_exchange(config, ranks, gpu, step, 1000000, assumed_keys(config, 64));
  };
  EXPECT_EQ(exchange_of(1, 0).in_step, 0);
  const ExchangeForecast alone = exchange_of(4, 0);
  // Two slots on four ranks. An owner sends three quarters of 64 vectors of 16 floats. Keys are not counted.
  const double vectors = 64 * 16 * 4 * 0.75 / (0.7 * 450e9);
  EXPECT_NEAR(alone.vectors, vectors + 15e-6, 1e-9);
  EXPECT_NEAR(alone.gradients, alone.vectors, 1e-12);
  EXPECT_NEAR(alone.sums, 1.5 * 4e6 / (0.67 * 450e9) + 15e-6, 1e-9);
  EXPECT_NEAR(alone.in_step, alone.all(), 1e-12);
  EXPECT_NEAR(exchange_of(4, 1).in_step, alone.vectors, 1e-12) << "the rest is concurrent with a long backward pass";
}

TEST(KnownGpus, AreFoundByTheNamesOfTheirDrivers) {
  for (const std::string& name : gpu_names()) EXPECT_EQ(find_known_gpu(name)->name, name);
  EXPECT_EQ(find_known_gpu("NVIDIA H100 80GB HBM3")->name, "H100");
  EXPECT_EQ(find_known_gpu("NVIDIA H100 PCIe")->name, "H100-PCIe");
  EXPECT_EQ(find_known_gpu("NVIDIA A100-SXM4-40GB")->name, "A100-40GB");
  EXPECT_EQ(find_known_gpu("NVIDIA L40S")->name, "L40S");
  EXPECT_FALSE(find_known_gpu("NVIDIA L40"));
  EXPECT_FALSE(find_known_gpu("Tesla T4"));
}

}  // namespace
}  // namespace hctr::test
