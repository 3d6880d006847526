// The fields of an embedding layer, their words, and the checks of a single section.
#include "config/sections/embedding_section.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

const std::string kNoBound = "what ranks exchange has one size, that of the fullest batch there may be";
const std::string kNoLinks = "which keys are frequent does not depend on links";

void check_policy(const SparseEmbeddingHparam& h, bool sized, const std::string& place, Problems& problems) {
  if (h.when_full && !sized)
    problems.error(place + "/when_full",
                   "a table is full when it has so many rows: say how many with \"max_vocabulary_size_per_gpu\"");
  if (!h.grow && h.when_full && *h.when_full != WhenFull::error)
    problems.note(place + "/grow", "\"when_full\" says what happens at the limit; \"grow\" adds nothing to it");
  if (h.min_count && h.admit_probability)
    problems.error(place + "/admit_probability",
                   "keys get rows by their count or by chance: \"min_count\" stands there too, leave one out");
  if (h.max_candidates && !h.min_count)
    problems.error(place + "/max_candidates", "limits the keys that \"min_count\" counts, which is not there");
}

Schema<SparseEmbeddingHparam> hparam_schema(const std::string& type) {
  using H = SparseEmbeddingHparam;
  return Schema<H>(type)
      .need("embedding_vec_size", &H::embedding_vec_size, "elements of a vector", at_least(1))
      .need("combiner", &H::combiner,
            "how the vectors of a slot become one: their sum (0), mean (1), or sum divided by the root of their number "
            "(sqrtn); none: "
            "they stay apart, each key's at its place in the order of keys, zeros behind the last")
      .opt("max_vocabulary_size_per_gpu", &H::max_vocabulary_size_per_gpu,
           "rows to reserve memory for at the start; the table grows past them, unless \"when_full\" or \"grow\" makes "
           "them "
           "a limit",
           between(1, kMostRows))
      .opt("vocabulary_size", &H::vocabulary_size, "other spelling, over all GPUs", between(1, 1LL << 48))
      .alias("max_vocabulary_size_global")
      .opt("workspace_size_per_gpu_in_mb", &H::workspace_size_per_gpu_in_mb, "newer spelling, as memory of the vectors",
           Range{.low = 0, .high = 1LL << 30, .low_open = true})
      .opt("slot_size_array", &H::slot_size_array,
           "keys of each slot, which are counted through all slots of all sparse inputs: those of the first slot from "
           "0 on, those of the next behind them. "
           "Every key then has its row from the start (see index); where rows belong to slot and key, the size is also "
           "the bound of its slot's initial "
           "values, sqrt(1 / size)",
           at_least(1))
      .opt("grow", &H::grow, "false: more rows than stated are an error")
      .opt("index", &H::index,
           "how a key finds its row. direct: by arithmetic from slot_size_array; all rows are there from the start, "
           "saved, and seen by evaluation, "
           "and a key outside its slot's range is an error. hash: rows come with their keys, which may be any numbers; "
           "slot_size_array is a hint. "
           "auto: direct for the types whose slot_size_array is such a promise, LocalizedSlotSparseEmbeddingOneHot and "
           "HybridSparseEmbedding, unless a field "
           "says which keys get rows or which rows leave; hash for the others, whose data may hold any keys")
      .opt("identity", &H::identity,
           cat("what a row belongs to: slot_and_key, a key has a row in each slot, and model files name slots; or key, "
               "it has one row for all slots, "
               "and model files name none; left out: ",
               type == kDistributedEmbedding ? "key" : "slot_and_key"))
      .opt("storage", &H::storage,
           "what vectors are stored as; in fp16 and bf16 each update is rounded at random so that the mean is kept. "
           "Model files hold fp32")
      .opt("state_storage", &H::state_storage,
           "the same for the optimizer's states; the one number a row of row-wise AdaGrad stays fp32")
      .opt("exchange_precision", &H::exchange_precision, "as the solver's, for this embedding alone")
      .opt("when_full", &H::when_full,
           "makes the rows stated a limit and says what happens when the data bring more keys. error: training stops "
           "and saves the model. "
           "evict_lru: rows that were not seen for longest leave for the new ones; evict_lfu: those seen least often; "
           "of both, 1/16 of the "
           "limit at a time. ignore: new keys share one row, which keys never seen have in evaluation from then on")
      .opt("expire_after", &H::expire_after,
           "steps: rows whose key came in none of so many training steps leave; looked for every expire_after / 16 "
           "steps",
           at_least(1))
      .opt("min_count", &H::min_count,
           "a key gets a row once it has come so often, its occurrences in the present batch included; until then it "
           "contributes zeros, "
           "and counts as a key of its mean",
           between(1, 1e9))
      .opt("admit_probability", &H::admit_probability,
           "each bag with a key that has no row gets it one with this probability; until then as with min_count",
           Range{.low = 0, .high = 1, .low_open = true})
      .opt("max_candidates", &H::max_candidates,
           "with min_count: keys that are counted without having a row; beyond them those that were not seen for "
           "longest start anew. "
           "10,000,000 when not given; 41 to 63 bytes each",
           at_least(1))
      .opt("count_keys", &H::count_keys,
           "count how often each key that has a row occurs, for 4 bytes a row; the counts are saved beside the model "
           "file, go on when it is loaded, and "
           "table_inspect shows them")
      .ignored("load_factor", "the index sizes itself")
      .opt("frequent_keys", &H::frequent_keys,
           "with placement hybrid: a file that says which keys are frequent, as table_inspect --count writes it with "
           "--json "
           "([distributed.md](distributed.md#frequent-keys)); left out, they are found")
      .opt("num_iterations_statistics", &H::num_iterations_statistics,
           "with placement hybrid: steps whose keys are counted to find the frequent ones; 20 when not given",
           at_least(1))
      .opt("max_num_frequent_categories", &H::max_num_frequent_categories,
           "with placement hybrid: how many keys at most are found to be frequent, in units of the batch size; fewer "
           "where fewer come often enough to pay "
           "([distributed.md](distributed.md#frequent-keys)); 1 when not given",
           at_least(1))
      .ignored("max_num_infrequent_samples", kNoBound)
      .ignored("p_dup_max", kNoBound)
      .ignored("max_all_reduce_bandwidth", kNoLinks)
      .ignored("max_all_to_all_bandwidth", kNoLinks)
      .ignored("efficiency_bandwidth_ratio", kNoLinks)
      .ignored("communication_type", "ranks talk through NCCL or MPI, whatever links there are")
      .ignored("hybrid_embedding_type", "\"identity\" says where keys that are not frequent live");
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
      .need("bottom", &E::bottom, "the sparse input whose keys are looked up")
      .need("top", &E::tops,
            "the result, [batch, slots, embedding_vec_size], or with combiner none [batch, all nnz_per_slot together, "
            "embedding_vec_size]; "
            "a second name is that of the lengths, [batch, slots]: how many keys each slot has")
      .part("sparse_embedding_hparam", &E::hparam, hparam_schema(type), "size and kind of the table")
      .part("optimizer", &E::optimizer, optimizer_schema(),
            "an optimizer of its own; its rate follows the top-level schedule in proportion")
      .part("table_memory", &E::table_memory, own_table_memory_schema(),
            "a budget of this table alone; what it does not say is the solver's, which it shares with other tables")
      .opt("placement", &E::placement,
           cat("on several ranks, which rank has which rows. localized: a slot's rows lie together, on a rank that the "
               "plan chooses; distributed: every "
               "slot is spread over all ranks, by key; data_parallel: all rows are on every rank, for tables with a "
               "direct index that are small beside a batch; "
               "hybrid: frequent keys are on every rank, and the plan chooses for the others; auto: the plan chooses "
               "among these. Left out: ",
               type == kDistributedEmbedding ? "distributed"
               : type == kHybridEmbedding    ? "hybrid, or auto for tables whose rows may leave or wait"
                                             : "localized",
               type == kDistributedEmbedding || type == kHybridEmbedding ? ""
                                                                         : ", and distributed where identity is key",
               ". See [distributed.md](distributed.md#the-plan)"))
      .ignored("plan_file", "the program makes its own plan, \"placement_file\" of the solver gives it back")
      .ignored("plan_file1", "the program makes its own plan, \"placement_file\" of the solver gives it back")
      .together([type](E& e, const std::string& pointer, Problems& problems) {
        e.type = type;
        const size_t tops = e.tops.names.size();
        if (tops != 1 && tops != 2)
          problems.error(pointer + "/top",
                         cat("names ", tops, " tensors; an embedding makes one, or two: the vectors and the lengths"));
        const SparseEmbeddingHparam& h = e.hparam;
        const std::string place = pointer + "/sparse_embedding_hparam";
        if (e.placement == PlacementRule::localized &&
            h.identity.value_or(type == kDistributedEmbedding ? Identity::key : Identity::slot_and_key) ==
                Identity::key)
          problems.error(pointer + "/placement",
                         "rows belong to keys alone here and have one owner whatever the slot: use \"distributed\" or "
                         "\"auto\", or "
                         "\"identity\": \"slot_and_key\"");
        const int stated = h.max_vocabulary_size_per_gpu.has_value() + h.vocabulary_size.has_value() +
                           h.workspace_size_per_gpu_in_mb.has_value();
        if (stated > 1)
          problems.note(
              place,
              "of \"workspace_size_per_gpu_in_mb\", \"max_vocabulary_size_per_gpu\" and \"vocabulary_size\" the first "
              "that is given says how many rows to reserve memory for");
        if (!h.grow && stated == 0 && h.slot_size_array.empty())
          problems.error(place + "/grow", "a table that may not grow needs its size: \"max_vocabulary_size_per_gpu\"");
        if (h.index == IndexKind::direct && h.slot_size_array.empty())
          problems.error(place + "/index", "a direct index needs the keys there are: \"slot_size_array\"");
        if (h.index == IndexKind::direct && !h.sizes_fit())
          problems.error(place + "/index", cat("the sizes in \"slot_size_array\" add up to more than the ", kMostRows,
                                               " rows that a table can have; use \"hash\""));
        if (h.index == IndexKind::direct && h.policy().any())
          problems.error(place + "/index",
                         "a direct index has a row for every key from the start, so that none can be let in, or leave: "
                         "use \"hash\"");
        check_policy(h, stated > 0 || !h.slot_size_array.empty(), place, problems);
        if (stated > 0 && !h.slot_size_array.empty())
          problems.note(place,
                        "\"slot_size_array\" says how many rows to reserve memory for; the other size is not used");
      });
}

EmbeddingSection parse_embedding(const Json& layer, const std::string& pointer, Problems& problems) {
  const std::string& type = *unwrapped(*layer.find("type")).string();
  EmbeddingSection section = embedding_schema(type).parse(layer, pointer, problems, {"name", "type"});
  if (section.tops.names.empty()) section.tops.names = {""};  // already reported; the other checks still run
  section.type = type;
  section.dim = section.hparam.embedding_vec_size;
  return section;
}

}  // namespace hctr
