// The schema of an embedding layer: its fields, enumeration words and checks within one section.
#include "config/sections/embedding_section.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

const std::string kNoBound = "messages between ranks always have the size of the largest possible batch";
const std::string kNoLinks = "the choice of hot keys does not depend on the bandwidth of links";

void check_policy(const SparseEmbeddingHparam& h, bool sized, const std::string& place, Problems& problems) {
  if (h.when_full && !sized)
    problems.error(place + "/when_full", "needs a row limit: set \"max_vocabulary_size_per_gpu\"");
  if (!h.grow && h.when_full && *h.when_full != WhenFull::error)
    problems.note(place + "/grow", "\"when_full\" decides what happens at the limit; \"grow\" is then not read");
  if (h.min_count && h.admit_probability)
    problems.error(place + "/admit_probability",
                   "\"min_count\" is also set; keys get rows either by count or at random: keep one");
  if (h.max_candidates && !h.min_count)
    problems.error(place + "/max_candidates", "limits the keys that \"min_count\" counts: set \"min_count\" too");
}

void add_vectors_and_rows(Schema<SparseEmbeddingHparam>& schema) {
  using H = SparseEmbeddingHparam;
  schema.need("embedding_vec_size", &H::embedding_vec_size, "elements of a vector", at_least(1))
      .need("combiner", &H::combiner,
            "how the vectors of a slot are combined: their sum (0), mean (1), or sum divided by the square root of "
            "their number (sqrtn); none: each key keeps its vector, in the order of the keys, padded with zeros")
      .opt("max_vocabulary_size_per_gpu", &H::max_vocabulary_size_per_gpu,
           "number of rows for which memory is reserved at the start; the table grows beyond this number, unless "
           "\"when_full\" or \"grow\" makes the number a limit",
           between(1, kMostRows))
      .opt("vocabulary_size", &H::vocabulary_size,
           "instead of max_vocabulary_size_per_gpu: the number of rows over "
           "all GPUs",
           between(1, 1LL << 48))
      .alias("max_vocabulary_size_global")
      .opt("workspace_size_per_gpu_in_mb", &H::workspace_size_per_gpu_in_mb,
           "instead of max_vocabulary_size_per_gpu: the memory of the vectors per GPU in "
           "MiB",
           Range{.low = 0, .high = 1LL << 30, .low_open = true})
      .opt("slot_size_array", &H::slot_size_array,
           "number of keys of each slot. Keys are numbered across the slots of all sparse inputs: the first slot's "
           "keys start at 0, and each further slot's keys follow those of the previous slot. Every key then has a row "
           "from the start (see index). If slot and key identify a row, sqrt(1 / size) bounds its initial values",
           at_least(1))
      .opt("grow", &H::grow, "false: more rows than the stated number are an error");
}

void add_index(Schema<SparseEmbeddingHparam>& schema, const std::string& type) {
  using H = SparseEmbeddingHparam;
  schema
      .opt("index", &H::index,
           "how a key is mapped to its row. direct: by arithmetic from slot_size_array; all rows exist from the "
           "start. hash: rows are added when a key first occurs, and keys may be any numbers. auto: direct if "
           "slot_size_array lists all keys and no field controls admission or eviction. See "
           "[embedding.md](embedding.md)")
      .opt("identity", &H::identity,
           cat("what identifies a row. slot_and_key: a key has a row in each slot, and model files contain slots; key: "
               "a key has one row for all slots, and model files contain no slots; default: ",
               type == kDistributedEmbedding ? "key" : "slot_and_key"))
      .ignored("load_factor", "the program chooses the size of the index");
}

void add_storage(Schema<SparseEmbeddingHparam>& schema) {
  using H = SparseEmbeddingHparam;
  schema
      .opt("storage", &H::storage,
           "storage type of vectors; in fp16 and bf16 updates are rounded stochastically, which preserves the mean. "
           "Model files hold fp32")
      .opt("state_storage", &H::state_storage,
           "storage type of optimizer states, as for vectors; row-wise AdaGrad's state, one number per row, stays "
           "fp32")
      .opt("exchange_precision", &H::exchange_precision, "like the solver's field, for this embedding only");
}

void add_row_policy(Schema<SparseEmbeddingHparam>& schema) {
  using H = SparseEmbeddingHparam;
  schema
      .opt("when_full", &H::when_full,
           "makes the stated number of rows a limit, and sets the action when more keys occur. error: training "
           "stops and saves the model. evict_lru: evicts the least recently used rows; evict_lfu: evicts the least "
           "frequently used rows; each eviction frees 1/16 of the limit. ignore: new keys share one row, which "
           "evaluation then also uses for unknown keys")
      .opt("expire_after", &H::expire_after,
           "a row is removed if its key has not occurred for this number of training steps; checked every expire_after "
           "/ 16 steps",
           at_least(1))
      .opt("min_count", &H::min_count,
           "number of occurrences, including the current batch, after which a key gets a row; until then the key's "
           "vector is zero, and combiner mean still counts the key",
           between(1, 1e9))
      .opt("admit_probability", &H::admit_probability,
           "probability, for each bag that contains a key without a row, that the key gets a row; until then the "
           "key is handled as with min_count",
           Range{.low = 0, .high = 1, .low_open = true})
      .opt("max_candidates", &H::max_candidates,
           "with min_count: maximum number of keys without a row whose occurrences are counted; above it the "
           "counts of the least recently used keys are dropped. Default: 10,000,000. A counted key takes 41 to 63 "
           "bytes",
           at_least(1))
      .opt("count_keys", &H::count_keys,
           "count the occurrences of each key that has a row, in 4 bytes per row; the counts are saved next to the "
           "model file and loaded with it; table_inspect prints the counts");
}

void add_hot_keys(Schema<SparseEmbeddingHparam>& schema) {
  using H = SparseEmbeddingHparam;
  schema
      .opt("frequent_keys", &H::frequent_keys,
           "with placement hybrid: a file that lists the hot keys, as table_inspect --count --json writes it "
           "([distributed.md](distributed.md#frequent-keys)); default: training finds the hot keys")
      .opt("num_iterations_statistics", &H::num_iterations_statistics,
           "with placement hybrid: number of steps in which keys are counted to find the hot keys; default: 20",
           at_least(1))
      .opt("max_num_frequent_categories", &H::max_num_frequent_categories,
           "with placement hybrid: maximum number of hot keys as a multiple of the batch size; fewer are used if "
           "fewer keys occur often enough ([distributed.md](distributed.md#frequent-keys)); default: 1",
           at_least(1))
      .ignored("max_num_infrequent_samples", kNoBound)
      .ignored("p_dup_max", kNoBound)
      .ignored("max_all_reduce_bandwidth", kNoLinks)
      .ignored("max_all_to_all_bandwidth", kNoLinks)
      .ignored("efficiency_bandwidth_ratio", kNoLinks)
      .ignored("communication_type", "ranks always communicate through NCCL or MPI")
      .ignored("hybrid_embedding_type", "\"identity\" determines the placement of keys that are not hot");
}

Schema<SparseEmbeddingHparam> hparam_schema(const std::string& type) {
  Schema<SparseEmbeddingHparam> schema(type);
  // The manual lists the fields in this order.
  add_vectors_and_rows(schema);
  add_index(schema, type);
  add_storage(schema);
  add_row_policy(schema);
  add_hot_keys(schema);
  return schema;
}

void check_embedding(const EmbeddingSection& e, const std::string& pointer, Problems& problems) {
  const size_t tops = e.tops.names.size();
  if (tops != 1 && tops != 2)
    problems.error(pointer + "/top", cat("names ", tops,
                                         " tensors; expected one or two: the vectors and the number of keys of "
                                         "each slot"));
  const SparseEmbeddingHparam& h = e.hparam;
  const std::string place = pointer + "/sparse_embedding_hparam";
  if (e.placement == PlacementRule::localized &&
      h.identity.value_or(e.type == kDistributedEmbedding ? Identity::key : Identity::slot_and_key) == Identity::key)
    problems.error(pointer + "/placement",
                   "with \"identity\": \"key\" a row has one owner for all slots: use \"distributed\" or "
                   "\"auto\", or \"identity\": \"slot_and_key\"");
  const int stated = h.max_vocabulary_size_per_gpu.has_value() + h.vocabulary_size.has_value() +
                     h.workspace_size_per_gpu_in_mb.has_value();
  if (stated > 1)
    problems.note(place,
                  "the first of \"workspace_size_per_gpu_in_mb\", \"max_vocabulary_size_per_gpu\" and "
                  "\"vocabulary_size\" that is given sets the number of reserved rows");
  if (!h.grow && stated == 0 && h.slot_size_array.empty())
    problems.error(place + "/grow", "a table that must not grow needs its size: \"max_vocabulary_size_per_gpu\"");
  if (h.index == IndexKind::direct && h.slot_size_array.empty())
    problems.error(place + "/index", "a direct index needs the number of keys: \"slot_size_array\"");
  if (h.index == IndexKind::direct && !h.sizes_fit())
    problems.error(place + "/index", cat("the sizes in \"slot_size_array\" add up to more than the ", kMostRows,
                                         " rows that a table can have; use \"hash\""));
  if (h.index == IndexKind::direct && h.policy().any())
    problems.error(place + "/index",
                   "a direct index has a row for every key from the start, so admission and eviction are not "
                   "possible: use \"hash\"");
  check_policy(h, stated > 0 || !h.slot_size_array.empty(), place, problems);
  if (stated > 0 && !h.slot_size_array.empty())
    problems.note(place, "\"slot_size_array\" sets the number of reserved rows; the other size is not used");
}

}  // namespace

const std::vector<std::pair<std::string, ops::Combiner>>& EnumWords<ops::Combiner>::table() {
  static const std::vector<std::pair<std::string, ops::Combiner>> words = {{"sum", ops::Combiner::sum},
                                                                           {"mean", ops::Combiner::mean},
                                                                           {"sqrtn", ops::Combiner::sqrtn},
                                                                           {"none", ops::Combiner::none}};
  return words;
}

const std::vector<std::pair<std::string, IndexKind>>& EnumWords<IndexKind>::table() {
  static const std::vector<std::pair<std::string, IndexKind>> words = {
      {"auto", IndexKind::automatic}, {"hash", IndexKind::hash}, {"direct", IndexKind::direct}};
  return words;
}

const std::vector<std::pair<std::string, Identity>>& EnumWords<Identity>::table() {
  static const std::vector<std::pair<std::string, Identity>> words = {{"slot_and_key", Identity::slot_and_key},
                                                                      {"key", Identity::key}};
  return words;
}

const std::vector<std::pair<std::string, PlacementRule>>& EnumWords<PlacementRule>::table() {
  static const std::vector<std::pair<std::string, PlacementRule>> words = {
      {"auto", PlacementRule::automatic},
      {"localized", PlacementRule::localized},
      {"distributed", PlacementRule::distributed},
      {"data_parallel", PlacementRule::data_parallel},
      {"hybrid", PlacementRule::hybrid}};
  return words;
}

const std::vector<std::pair<std::string, DType>>& EnumWords<DType>::table() {
  static const std::vector<std::pair<std::string, DType>> words = {
      {"fp32", DType::f32}, {"fp16", DType::f16}, {"bf16", DType::bf16}};
  return words;
}

const std::vector<std::pair<std::string, WhenFull>>& EnumWords<WhenFull>::table() {
  static const std::vector<std::pair<std::string, WhenFull>> words = {{"error", WhenFull::error},
                                                                      {"evict_lru", WhenFull::evict_lru},
                                                                      {"evict_lfu", WhenFull::evict_lfu},
                                                                      {"ignore", WhenFull::ignore}};
  return words;
}

std::string read_value(const Json& value, const Range&, ops::Combiner& out) {
  const Json& v = unwrapped(value);
  constexpr size_t kNumbered = 2;
  const auto& words = EnumWords<ops::Combiner>::table();
  for (size_t i = 0; i < words.size(); ++i)
    if ((v.string() && *v.string() == words[i].first) ||
        (i < kNumbered && v.integer() && *v.integer() == static_cast<int64_t>(i))) {
      out = words[i].second;
      return "";
    }
  return "\"sum\" (or 0), \"mean\" (or 1), \"sqrtn\" or \"none\"";
}

Misfit read_value(const Json& value, const Range& range, TensorNames& out) {
  Misfit misfit = read_value(value, range, out.names);
  if (!misfit.empty() && misfit.pointer.empty()) misfit.expected = "a string or " + misfit.expected;
  return misfit;
}

Json to_json(const TensorNames& tensors) { return to_json(tensors.names); }

Schema<EmbeddingSection> embedding_schema(const std::string& type) {
  using E = EmbeddingSection;
  return Schema<E>(type)
      .need("bottom", &E::bottom, "the sparse input whose keys to look up")
      .need("top", &E::tops,
            "the result, [batch, slots, embedding_vec_size], or with combiner none [batch, sum of nnz_per_slot, "
            "embedding_vec_size]; an optional second name is the number of keys of each slot, [batch, slots]")
      .part("sparse_embedding_hparam", &E::hparam, hparam_schema(type), "size and kind of the table")
      .part("optimizer", &E::optimizer, optimizer_schema(),
            "a separate optimizer for this embedding; the top-level schedule scales its learning rate")
      .part("table_memory", &E::table_memory, own_table_memory_schema(),
            "a memory budget for this table only; omitted fields use the solver's budget, which all tables share")
      .opt("placement", &E::placement,
           cat("placement of rows on several ranks. localized: all rows of a slot on one rank; distributed: rows of "
               "each slot sharded by key; data_parallel: all rows on every rank; hybrid: rows of hot keys on every "
               "rank, each other row on one rank; auto: by the placement plan. Default: ",
               type == kDistributedEmbedding ? "distributed"
               : type == kHybridEmbedding    ? "hybrid, or auto for tables with eviction or admission"
                                             : "localized",
               type == kDistributedEmbedding || type == kHybridEmbedding ? "" : ", and distributed if identity is key",
               ". See [distributed.md](distributed.md#the-plan)"))
      .ignored("plan_file", "the program makes its own plan; \"placement_file\" of the solver loads a plan")
      .ignored("plan_file1", "the program makes its own plan; \"placement_file\" of the solver loads a plan")
      .together([type](E& e, const std::string& pointer, Problems& problems) {
        e.type = type;
        check_embedding(e, pointer, problems);
      });
}

EmbeddingSection parse_embedding(const Json& layer, const std::string& pointer, Problems& problems) {
  const std::string& type = *unwrapped(*layer.find("type")).string();
  EmbeddingSection section = embedding_schema(type).parse(layer, pointer, problems, {"name", "type"});
  // Another check reports a missing name. With a placeholder, the remaining checks can run.
  if (section.tops.names.empty()) section.tops.names = {""};
  section.type = type;
  section.dim = section.hparam.embedding_vec_size;
  return section;
}

}  // namespace hctr
