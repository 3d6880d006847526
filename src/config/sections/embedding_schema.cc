// The schema of an embedding layer: its fields, enumeration words and checks within one section.
#include "config/sections/embedding_section.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

const std::string kNoBound = "messages between ranks have one size, that of the largest possible batch";
const std::string kNoLinks = "hot keys do not depend on links";

void check_policy(const SparseEmbeddingHparam& h, bool sized, const std::string& place, Problems& problems) {
  if (h.when_full && !sized)
    problems.error(place + "/when_full", "needs a row limit: set \"max_vocabulary_size_per_gpu\"");
  if (!h.grow && h.when_full && *h.when_full != WhenFull::error)
    problems.note(place + "/grow", "\"when_full\" says what happens at the limit; \"grow\" adds nothing to it");
  if (h.min_count && h.admit_probability)
    problems.error(place + "/admit_probability",
                   "\"min_count\" is also set; keys get rows either by count or at random: keep one");
  if (h.max_candidates && !h.min_count)
    problems.error(place + "/max_candidates", "limits the keys that \"min_count\" counts: set \"min_count\" too");
}

Schema<SparseEmbeddingHparam> hparam_schema(const std::string& type) {
  using H = SparseEmbeddingHparam;
  return Schema<H>(type)
      .need("embedding_vec_size", &H::embedding_vec_size, "elements of a vector", at_least(1))
      .need("combiner", &H::combiner,
            "how the vectors of a slot are combined: their sum (0), mean (1), or sum divided by the square root of "
            "their number (sqrtn); none: not combined, each key's vector in the order of keys, padded with zeros")
      .opt("max_vocabulary_size_per_gpu", &H::max_vocabulary_size_per_gpu,
           "rows to reserve memory for at the start; the table grows past them, unless \"when_full\" or \"grow\" makes "
           "them "
           "a limit",
           between(1, kMostRows))
      .opt("vocabulary_size", &H::vocabulary_size, "another spelling, over all GPUs", between(1, 1LL << 48))
      .alias("max_vocabulary_size_global")
      .opt("workspace_size_per_gpu_in_mb", &H::workspace_size_per_gpu_in_mb,
           "newer spelling, as the memory of the vectors", Range{.low = 0, .high = 1LL << 30, .low_open = true})
      .opt("slot_size_array", &H::slot_size_array,
           "number of keys of each slot. Keys are numbered through all slots of all sparse inputs: the first slot's "
           "start at 0, the next slot's follow. Every key then has its row from the start (see index); if rows belong "
           "to slot and key, the size also sets the bound of the slot's initial values, sqrt(1 / size)",
           at_least(1))
      .opt("grow", &H::grow, "false: more rows than stated are an error")
      .opt("index", &H::index,
           "how a key is mapped to its row. direct: by arithmetic from slot_size_array; all rows exist from the start. "
           "hash: rows are added with their keys, which may be any numbers. auto: direct if slot_size_array lists all "
           "keys and no field controls admission or eviction. See [embedding.md](embedding.md)")
      .opt("identity", &H::identity,
           cat("what identifies a row. slot_and_key: a key has a row in each slot, and model files contain slots; key: "
               "a key has one row for all slots, and model files contain no slots; default: ",
               type == kDistributedEmbedding ? "key" : "slot_and_key"))
      .opt("storage", &H::storage,
           "storage type of vectors; in fp16 and bf16 updates are rounded stochastically, which preserves the mean. "
           "Model files hold fp32")
      .opt("state_storage", &H::state_storage,
           "the same for optimizer states; the one number per row of row-wise AdaGrad stays fp32")
      .opt("exchange_precision", &H::exchange_precision, "like the solver's field, for this embedding only")
      .opt("when_full", &H::when_full,
           "makes the stated rows a limit, and sets the action when more keys occur. error: training stops and saves "
           "the model. evict_lru: evicts the least recently used rows; evict_lfu: the least frequently used; each time "
           "1/16 of the limit. ignore: new keys share one row, which evaluation then also uses for unknown keys")
      .opt(
          "expire_after", &H::expire_after,
          "rows whose key did not occur in this many training steps are removed; checked every expire_after / 16 steps",
          at_least(1))
      .opt("min_count", &H::min_count,
           "a key gets a row after this many occurrences, including the current batch; until then it contributes "
           "zeros, and counts as a key of its mean",
           between(1, 1e9))
      .opt("admit_probability", &H::admit_probability,
           "probability that a key without a row gets one, per bag that contains it; until then as with min_count",
           Range{.low = 0, .high = 1, .low_open = true})
      .opt("max_candidates", &H::max_candidates,
           "with min_count: maximum number of keys counted without a row; beyond it the counts of the least recently "
           "used are dropped. Default: 10,000,000; 41 to 63 bytes each",
           at_least(1))
      .opt("count_keys", &H::count_keys,
           "count the occurrences of each key with a row, in 4 bytes per row; the counts are saved next to the model "
           "file, continue when it is loaded, and table_inspect prints them")
      .ignored("load_factor", "the index sizes itself")
      .opt("frequent_keys", &H::frequent_keys,
           "with placement hybrid: a file that lists the hot keys, as table_inspect --count writes it with --json "
           "([distributed.md](distributed.md#frequent-keys)); by default they are found")
      .opt("num_iterations_statistics", &H::num_iterations_statistics,
           "with placement hybrid: number of steps in which keys are counted to find the hot ones; default: 20",
           at_least(1))
      .opt("max_num_frequent_categories", &H::max_num_frequent_categories,
           "with placement hybrid: maximum number of hot keys, in units of the batch size; fewer if fewer occur often "
           "enough ([distributed.md](distributed.md#frequent-keys)); default: 1",
           at_least(1))
      .ignored("max_num_infrequent_samples", kNoBound)
      .ignored("p_dup_max", kNoBound)
      .ignored("max_all_reduce_bandwidth", kNoLinks)
      .ignored("max_all_to_all_bandwidth", kNoLinks)
      .ignored("efficiency_bandwidth_ratio", kNoLinks)
      .ignored("communication_type", "ranks communicate through NCCL or MPI, whatever the links are")
      .ignored("hybrid_embedding_type", "\"identity\" determines the placement of other keys");
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
            "the result, [batch, slots, embedding_vec_size], or with combiner none [batch, all nnz_per_slot together, "
            "embedding_vec_size]; a second name is the lengths, [batch, slots]: the number of keys of each slot")
      .part("sparse_embedding_hparam", &E::hparam, hparam_schema(type), "size and kind of the table")
      .part("optimizer", &E::optimizer, optimizer_schema(),
            "a separate optimizer; its rate follows the top-level schedule in proportion")
      .part("table_memory", &E::table_memory, own_table_memory_schema(),
            "a memory budget for this table only; fields that it omits are the solver's, shared with other tables")
      .opt(
          "placement", &E::placement,
          cat("on several ranks, which rank has which rows. localized: those of a slot on one rank; distributed: those "
              "of every slot sharded by key; data_parallel: all rows on every rank; hybrid: hot keys on every rank; "
              "auto: the plan chooses. Default: ",
              type == kDistributedEmbedding ? "distributed"
              : type == kHybridEmbedding    ? "hybrid, or auto for tables with eviction or admission"
                                            : "localized",
              type == kDistributedEmbedding || type == kHybridEmbedding ? "" : ", and distributed if identity is key",
              ". See [distributed.md](distributed.md#the-plan)"))
      .ignored("plan_file", "the program makes its own plan; \"placement_file\" of the solver loads one")
      .ignored("plan_file1", "the program makes its own plan; \"placement_file\" of the solver loads one")
      .together([type](E& e, const std::string& pointer, Problems& problems) {
        e.type = type;
        const size_t tops = e.tops.names.size();
        if (tops != 1 && tops != 2)
          problems.error(pointer + "/top",
                         cat("names ", tops, " tensors; an embedding has one or two: the vectors and the lengths"));
        const SparseEmbeddingHparam& h = e.hparam;
        const std::string place = pointer + "/sparse_embedding_hparam";
        if (e.placement == PlacementRule::localized &&
            h.identity.value_or(type == kDistributedEmbedding ? Identity::key : Identity::slot_and_key) ==
                Identity::key)
          problems.error(pointer + "/placement",
                         "rows belong to keys alone here and have one owner for all slots: use \"distributed\" or "
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
                         "a direct index has a row for every key from the start, which excludes admission and "
                         "eviction: use \"hash\"");
        check_policy(h, stated > 0 || !h.slot_size_array.empty(), place, problems);
        if (stated > 0 && !h.slot_size_array.empty())
          problems.note(place, "\"slot_size_array\" sets the number of reserved rows; the other size is not used");
      });
}

EmbeddingSection parse_embedding(const Json& layer, const std::string& pointer, Problems& problems) {
  const std::string& type = *unwrapped(*layer.find("type")).string();
  EmbeddingSection section = embedding_schema(type).parse(layer, pointer, problems, {"name", "type"});
  // a missing name is already reported; a placeholder lets the remaining checks run
  if (section.tops.names.empty()) section.tops.names = {""};
  section.type = type;
  section.dim = section.hparam.embedding_vec_size;
  return section;
}

}  // namespace hctr
