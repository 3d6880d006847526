#include "train/memory_bill.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "config/sections/optimizer_catalog.h"
#include "engine/disk/disk_rows.h"
#include "engine/placement/plan_file.h"
#include "formats/data/batch_layout.h"
#include "net/fusion/fuse_layers.h"
#include "net/graph/memory_plan.h"
#include "ops/embedding/embedding_group.h"
#include "ops/gemm/transposed_weights.h"
#include "score/batch_reading.h"
#include "score/scorer.h"
#include "train/placement_plan.h"
#include "train/step_pipeline.h"

namespace hctr {
namespace {

// Bytes of the CUDA context, cuBLASLt and its workspaces on one GPU.
constexpr int64_t kLibraries = int64_t{600} << 20;
constexpr int64_t kSortBytes = 16;  // scratch bytes per key of group_by_row on a GPU
// approximate bytes of a file chunk; the parsed chunk needs the same number of bytes
constexpr int64_t kChunkBytes = int64_t{1} << 20;

Graph graph_of(const Config& config, Phase phase, int64_t samples) {
  Problems problems;
  Graph graph = wire(config, samples, problems);
  problems.throw_if_any("the config");
  fuse_layers(graph, phase == Phase::train ? config.solver.mixed_precision : Precision{});
  return graph;
}

int64_t activations(const Config& config, Phase phase, int64_t samples) {
  return static_cast<int64_t>(MemoryPlan(graph_of(config, phase, samples), phase).bytes());
}

/// Bytes of the copies of dense weights: copies in the dtype of activations, or transposed copies in TF32.
int64_t bytes_of_copies(const Config& config, const Graph& graph) {
  if (config.solver.mixed_precision.mixed()) return 2 * graph.parameters;
  if (!config.solver.enable_tf32_compute) return 0;
  size_t bytes = 0;
  for (const Node& node : graph.nodes)
    for (const WeightSpec& weight : node.spec.weights)
      if (weight.transposed) bytes += ops::transposed_weights_spec(TensorSpec(DType::f32, weight.shape)).bytes();
  return static_cast<int64_t>(bytes);
}

std::vector<Placement> placements_of(const Config& config, const PlanProblem& problem) {
  std::vector<Placement> placements;
  if (problem.ranks > 1) return expected_placements(config, problem);
  for (const EmbeddingEntry& entry : config.embeddings)
    placements.push_back(
        Placement::without_plan(entry.section.placement_rule(), entry.section.identity_by_slot(),
                                entry.section.hparam.slot_size_array.empty()
                                    ? 1
                                    : static_cast<int64_t>(entry.section.hparam.slot_size_array.size()),
                                1));
  return placements;
}

/// The fraction of a slot's rows that a rank owns.
double share_of_slot(const Placement& placement, int64_t rank, int64_t ranks, size_t slot) {
  if (ranks == 1 || placement.replicated_on(ranks) ||
      placement.replicated(static_cast<int64_t>(slot) * placement.pieces))
    return 1;
  double share = 0;
  for (int64_t p = 0; p < placement.pieces; ++p) {
    const int64_t number = static_cast<int64_t>(slot) * placement.pieces + p;
    if (placement.spread(number))
      share += 1.0 / static_cast<double>(ranks);
    else if (placement.holds(rank, number))
      share += 1;
  }
  return share / static_cast<double>(placement.pieces);
}

/// The rows of a table on one rank, or the stated capacity if that is larger; 0 if both are unknown.
int64_t rows_on(const EmbeddingSection& section, const Placement& placement, int64_t rank, int64_t ranks,
                const std::vector<int64_t>& distinct) {
  const std::vector<int64_t>& sizes =
      section.hparam.slot_size_array.empty() ? distinct : section.hparam.slot_size_array;
  double rows = 0;
  for (size_t s = 0; s < sizes.size(); ++s)
    rows += share_of_slot(placement, rank, ranks, s) * static_cast<double>(sizes[s]);
  const int64_t counted = static_cast<int64_t>(std::min(rows + 0.5, static_cast<double>(kMostRows)));
  return section.hparam.slot_size_array.empty() ? std::max(counted, section.stated_rows(rank, placement)) : counted;
}

struct TableBuffers {
  int64_t prepared = 0, exchanged = 0;  // bytes
  int64_t packed = 0;                   // extra bytes of a UniqueExchange if ranks are on several hosts
  int64_t keys = 0;                     // maximum number of keys that the rank receives in a batch
};

struct KeysAndVectors {
  double keys = 0, vectors = 0;
};

/// Bytes of the messages between hosts and of the lists for these messages. The rank sends the keys and vectors of
/// `own`, gathers the same number from the other ranks of its host, and receives the keys and vectors of `owned`.
double between_hosts(const KeysAndVectors& own, const KeysAndVectors& owned, double of_vector, double ring) {
  const double vectors = of_vector * (3 * own.vectors + owned.vectors),
               lists = 4 * ring * (3 * own.vectors + own.keys + owned.vectors + owned.keys),
               messages = 60 * own.keys + 12 * owned.keys + 16 * (own.vectors + owned.vectors);
  return vectors + lists + messages;
}

/// Extra bytes in training for the gradients between hosts, which are sorted by key and summed in f32.
double sums_between_hosts(const KeysAndVectors& own, const KeysAndVectors& owned, const PlanTable& table, double ring) {
  const auto dim = static_cast<double>(table.dim);
  const double sorted = own.keys * (4 * 3 * ring + ring + static_cast<double>(kSortBytes) + dim / 4),
               sums = table.number_bytes < 4 ? 4 * dim * own.vectors : 0;
  return sorted + sums + 4 * ring * owned.keys;
}

/// The ranks of a run, and the samples of each in a batch.
struct RankBatches {
  int64_t ranks, samples, eval_samples;
};

/// The bytes of a table's buffers for the batches in the ring and for their exchange.
TableBuffers buffers_of(const PlanTable& table, const Placement& placement, const SparseInput& input, int64_t rank,
                        const RankBatches& batches) {
  const auto [ranks, samples, eval_samples] = batches;
  double owned_keys = 0, owned_vectors = 0, vectors = 0;  // per sample
  for (size_t s = 0; s < table.slots.size(); ++s) {
    const bool whole = ranks == 1 || placement.replicated_on(ranks) ||
                       placement.replicated(static_cast<int64_t>(s) * placement.pieces);
    const bool spread = !whole && placement.spread(static_cast<int64_t>(s) * placement.pieces);
    const double here = spread ? 1 : share_of_slot(placement, rank, ranks, s);
    const double columns = static_cast<double>(table.slots[s].vectors);
    owned_keys += here * static_cast<double>(input.kept_nnz(static_cast<int64_t>(s)));
    if (whole) continue;
    owned_vectors += here * columns;
    vectors += columns * (spread ? static_cast<double>(ranks) : 1);
  }
  const bool exchanged = vectors > 0;
  const double all_samples = static_cast<double>(samples * (exchanged ? ranks : 1)),
               eval_all = static_cast<double>(eval_samples * (exchanged ? ranks : 1));
  const auto keys = static_cast<int64_t>(owned_keys * all_samples),
             eval_keys = static_cast<int64_t>(owned_keys * eval_all);
  const int64_t pieces = ops::RowGroups::most_pieces(keys);
  TableBuffers bytes;
  bytes.keys = exchanged ? std::min(keys, static_cast<int64_t>(input.kept_keys()) * samples * ranks)
                         : static_cast<int64_t>(input.kept_keys()) * samples;
  bytes.prepared = StepPipeline::kBuffers * (4 * 4 * keys + static_cast<int64_t>(sizeof(ops::Piece)) * pieces) +
                   pieces * table.dim * 4 + kSortBytes * keys + 4 * eval_keys;
  if (!exchanged) return bytes;
  const double of_vector = static_cast<double>(table.dim * table.number_bytes);
  for (const bool training : {true, false}) {
    const double own = static_cast<double>(training ? samples : eval_samples), all = training ? all_samples : eval_all,
                 ring = training ? StepPipeline::kBuffers : Scorer::kBuffers;
    const KeysAndVectors sent{.keys = static_cast<double>(input.kept_keys()) * own, .vectors = vectors * own},
        received{.keys = owned_keys * all, .vectors = owned_vectors * all};
    bytes.exchanged += static_cast<int64_t>(of_vector * (received.vectors + sent.vectors));
    bytes.packed += static_cast<int64_t>(between_hosts(sent, received, of_vector, ring) +
                                         (training ? sums_between_hosts(sent, received, table, ring) : 0));
  }
  bytes.exchanged +=
      8 * ((StepPipeline::kBuffers + 1) * keys + static_cast<int64_t>(input.kept_keys()) * samples + 3 * eval_keys);
  return bytes;
}

/// The budgets that state a GPU or disk limit, with their tables.
std::vector<MemoryBill::Budget> budgets_of(const Config& config, int64_t ranks) {
  const auto bytes = [](const MemorySize& size, int64_t parts) {
    return size.kind == MemorySize::Kind::bytes ? std::optional(size.bytes / parts) : std::nullopt;
  };
  std::vector<MemoryBill::Budget> budgets;
  const auto add = [&](const TableMemory& memory, std::vector<std::string> tables, RowMemory::Tiers shared) {
    if (tables.empty() || (memory.disk.empty() && memory.gpu.kind != MemorySize::Kind::bytes)) return;
    budgets.push_back({std::move(tables), memory.disk, bytes(memory.gpu, 1), bytes(memory.host, ranks),
                       bytes(memory.disk_limit, ranks), DiskRows::bytes_in_memory(1), shared});
  };
  std::vector<std::string> shared;
  for (const EmbeddingEntry& entry : config.embeddings)
    if (!entry.section.table_memory) shared.push_back(entry.section.top());
  add(config.solver.table_memory, shared, {true, true, true});
  for (const EmbeddingEntry& entry : config.embeddings)
    if (const auto& own = entry.section.table_memory)
      add(own->with(config.solver.table_memory), {entry.section.top()}, own->shared());
  return budgets;
}

/// The tables of a config and their placement.
struct BilledTables {
  const Config& config;
  const std::vector<std::vector<int64_t>>& distinct;  ///< [sparse input][slot]; empty: unknown
  RankBatches batches;
  PlanProblem problem;
  std::vector<Placement> placements;

  size_t input_of(size_t e) const {
    const auto& inputs = config.data.sparse;
    const std::string& bottom = config.embeddings[e].section.bottom;
    return static_cast<size_t>(
        std::find_if(inputs.begin(), inputs.end(), [&](const SparseInput& each) { return each.top == bottom; }) -
        inputs.begin());
  }
  int64_t rows(size_t e, int64_t rank) const {
    return rows_on(config.embeddings[e].section, placements[e], rank, batches.ranks,
                   distinct.empty() ? std::vector<int64_t>() : distinct.at(input_of(e)));
  }
};

BilledTables billed_tables(const Config& config, const std::vector<std::vector<int64_t>>& distinct,
                           const RankBatches& batches, double gpu_bytes) {
  BilledTables tables{.config = config,
                      .distinct = distinct,
                      .batches = batches,
                      .problem = plan_problem(config, batches.ranks, {}),
                      .placements = {}};
  tables.problem.speeds.memory = memory_for_plan(gpu_bytes);
  tables.placements = placements_of(config, tables.problem);
  return tables;
}

/// Bytes of all tables on one rank.
struct BytesOfTables {
  MemoryBill::Parts parts;  ///< a part for each table's rows
  std::map<std::string, MemoryBill::Rows> rows;
  TableBuffers buffers;
  int64_t of_moving_rows = 0, room_for_rows = 0;
};

BytesOfTables bytes_of_tables(const BilledTables& tables, int64_t rank) {
  const auto& [config, distinct, batches, problem, placements] = tables;
  BytesOfTables bytes;
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const EmbeddingSection& section = config.embeddings[e].section;
    const int64_t rows = tables.rows(e, rank);
    const TableBuffers buffers =
        buffers_of(problem.tables[e], placements[e], config.data.sparse[tables.input_of(e)], rank, batches);
    bytes.buffers.prepared += buffers.prepared;
    bytes.buffers.exchanged += buffers.exchanged;
    bytes.buffers.packed += buffers.packed;
    bytes.parts.emplace_back("rows of table " + section.top(), rows * problem.tables[e].row_bytes);
    const TableSpec spec = section.table_spec({.optimizer = config.optimizer});
    const bool is_direct = !spec.direct.empty();
    bytes.rows[section.top()] = {rows * number_bytes_of_row(spec),
                                 rows * (bytes_of_row(spec) - number_bytes_of_row(spec)),
                                 rows * bytes_of_moving_row(is_direct)};
    if (!is_direct && !section.hparam.limited() && !placements[e].replicated_on(batches.ranks))
      // If vectors are split, the capacity is a number of pieces, but `rows` is a number of whole rows.
      bytes.room_for_rows += problem.tables[e].row_bytes *
                             (rows_with_memory(rows, section.stated_rows(rank, placements[e]) / placements[e].pieces,
                                               buffers.keys / placements[e].pieces, StepPipeline::kBuffers + 1) -
                              rows);
    if (config.solver.table_memory.move_every > 0) bytes.of_moving_rows += rows * bytes_of_moving_row(is_direct);
  }
  return bytes;
}

/// Name and bytes per row of each table whose number of rows neither the config nor the data determine.
std::vector<std::pair<std::string, int64_t>> bytes_of_unknown_rows(const BilledTables& tables) {
  std::vector<std::pair<std::string, int64_t>> unknown;
  for (size_t e = 0; e < tables.config.embeddings.size(); ++e) {
    const EmbeddingSection& section = tables.config.embeddings[e].section;
    if (tables.distinct.empty() && section.stated_by().empty() && tables.rows(e, 0) == 0)
      unknown.emplace_back(section.top(), tables.problem.tables[e].row_bytes);
  }
  return unknown;
}

/// Bytes of the dense part and its activations on a rank.
MemoryBill::Parts parts_of_dense(const Config& config, const RankBatches& batches) {
  const Graph graph = graph_of(config, Phase::train, batches.samples);
  const int64_t weights = 4 * graph.parameters,
                states = config.optimizer.rule(config.optimizer.hyper.learning_rate).states();
  return {{"dense weights", weights + bytes_of_copies(config, graph)},
          {"gradients of weights", weights},
          {"optimizer states of weights", weights * states},
          {"activations in training", activations(config, Phase::train, batches.samples)},
          {"activations in evaluation", activations(config, Phase::evaluate, batches.eval_samples)}};
}

/// Bytes of the batches that a rank reads ahead.
struct BatchBuffers {
  int64_t training, evaluation;  ///< in host memory; equally many bytes are on the GPU
  int64_t unpacked;              ///< on the GPU only
};

BatchBuffers batch_buffers(const Config& config, const RankBatches& batches) {
  constexpr Device kAnyGpu{DeviceKind::cuda, 0};
  const BatchLayout layout = batch_layout(config, batches.samples, kAnyGpu),
                    eval_layout = batch_layout(config, batches.eval_samples, kAnyGpu);
  return {.training = static_cast<int64_t>(layout.bytes) * StepPipeline::kBuffers,
          .evaluation = static_cast<int64_t>(eval_layout.bytes) * Scorer::kBuffers,
          .unpacked = static_cast<int64_t>(layout.unpacked_bytes) * StepPipeline::kBuffers +
                      static_cast<int64_t>(eval_layout.unpacked_bytes) * Scorer::kBuffers};
}

}  // namespace

int64_t sum_of(const MemoryBill::Parts& parts) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : parts) sum += bytes;
  return sum;
}

MemoryBill::Rows& MemoryBill::Rows::operator+=(const Rows& other) {
  numbers += other.numbers;
  besides += other.besides;
  to_move += other.to_move;
  return *this;
}

MemoryBill memory_bill(const Config& config, int64_t ranks, const std::vector<std::vector<int64_t>>& distinct,
                       double gpu_bytes) {
  const RankBatches batches{.ranks = ranks,
                            .samples = samples_of_rank(config.solver.batchsize, ranks),
                            .eval_samples = samples_of_rank(config.solver.eval_batch(), ranks)};
  const MemoryBill::Parts dense = parts_of_dense(config, batches);
  const BatchBuffers staged = batch_buffers(config, batches);
  const BilledTables tables = billed_tables(config, distinct, batches, gpu_bytes);
  MemoryBill bill;
  if (const MemorySize& host = config.solver.table_memory.host; host.kind == MemorySize::Kind::bytes)
    bill.most_host_rows = host.bytes / ranks;
  bill.budgets = budgets_of(config, ranks);
  bill.bytes_of_unknown_rows = bytes_of_unknown_rows(tables);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    BytesOfTables of_tables = bytes_of_tables(tables, rank);
    MemoryBill::Parts parts = dense;
    parts.insert(parts.end(), of_tables.parts.begin(), of_tables.parts.end());
    parts.emplace_back("memory for new rows", of_tables.room_for_rows);
    parts.emplace_back("keys of batches", of_tables.buffers.prepared);
    if (ranks > 1) parts.emplace_back("exchange between ranks", of_tables.buffers.exchanged);
    parts.emplace_back("batches", staged.training + staged.evaluation + staged.unpacked);
    parts.emplace_back("CUDA and its libraries, about", kLibraries);
    bill.gpus.push_back(std::move(parts));
    bill.of_moving_rows.push_back(of_tables.of_moving_rows);
    bill.rows.push_back(std::move(of_tables.rows));
    bill.between_hosts.push_back(of_tables.buffers.packed);
  }
  const int64_t workers = reader_options(config, config.solver.batchsize).workers;
  bill.host = {
      {"page-locked batches", ranks * (staged.training + staged.evaluation)},
      {"reader, about", ranks * workers * 3 * kChunkBytes + 3 * ranks * (staged.training / StepPipeline::kBuffers)}};
  return bill;
}

}  // namespace hctr
