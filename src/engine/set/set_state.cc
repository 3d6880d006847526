#include "engine/set/set_state.h"

#include <optional>

#include "config/json.h"
#include "core/base/expect.h"
#include "core/comm/collective_error.h"
#include "engine/set/rank_state.h"
#include "engine/table/gather_rows.h"
#include "engine/table/saved_rows.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/manifest.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"

namespace hctr {
namespace {

constexpr const char* kWhat = "embedding set";

/// The options that must match when a state is loaded: all options that affect the results of a table.
Json about(const EmbeddingTableOptions& table) {
  const EmbeddingOptimizer& o = table.optimizer;
  Json json{Json::Object{}};
  const auto number = [](auto value) { return Json(static_cast<double>(value)); };
  json.set("name", table.name).set("dim", table.dim).set("rows", table.rows);
  json.set("format", static_cast<int64_t>(table.format)).set("rule", static_cast<int64_t>(o.rule));
  json.set("formula", static_cast<int64_t>(o.formula)).set("updates", static_cast<int64_t>(o.rows));
  json.set("row_wise", o.row_wise).set("initial_kind", static_cast<int64_t>(table.initial.kind));
  json.set("initial_value", number(table.initial.value)).set("initial_sum", number(o.initial));
  json.set("most_rows", table.most_rows).set("when_full", static_cast<int64_t>(table.when_full));
  json.set("min_count", table.min_count).set("admit_probability", table.admit_probability);
  json.set("expire_after", table.expire_after);
  return json;
}

Json about(const EmbeddingOptions& options) {
  Json::Array tables;
  for (const EmbeddingTableOptions& table : options.tables) tables.push_back(about(table));
  Json json{Json::Object{}};
  json.set("what", kWhat).set("seed", std::to_string(options.seed)).set("tables", std::move(tables));
  return json;
}

/// The placement of each table on several ranks, as JSON.
Json places_json(const std::vector<TableOnRank>& tables) {
  Json::Array places;
  for (const TableOnRank& table : tables)
    places.push_back(Json(Json::Array{static_cast<int64_t>(table.place.where), int64_t{table.place.owner}}));
  return places;
}

/// Runs body() on every rank; body() must not make collective calls. If any rank fails, every rank throws.
template <class Body>
void on_all_ranks(Communicator* comm, const Body& body) {
  if (!comm) return body();
  agree_without_limit(*comm, body);
}

int rank_in(const Communicator* comm) { return comm ? comm->rank() : 0; }
int ranks_of(const Communicator* comm) { return comm ? comm->size() : 1; }

/// The first difference between a saved set (`there`) and this set (`here`); nullopt if they match.
std::optional<std::string> difference(const Json& there, const Json& here) {
  const auto differ = [](const std::string& what, const Json* other, const Json* ours) {
    return cat(what, " is ", other ? other->text() : "not there", ", but here ", ours ? ours->text() : "not there");
  };
  for (const auto& [key, value] : *here.object()) {
    const Json* const other = there.find(key);
    if (key == "tables" || (other && other->text() == value.text())) continue;
    return differ(key == "seed" ? "the seed" : cat("'", key, "'"), other, &value);
  }
  const Json::Array &others = *there.find("tables")->array(), &ours = *here.find("tables")->array();
  if (others.size() != ours.size()) return cat("the number of tables is ", others.size(), ", but here ", ours.size());
  for (size_t t = 0; t < ours.size(); ++t)
    for (const auto& [key, value] : *ours[t].object()) {
      const Json* const other = others[t].find(key);
      if (!other || other->text() != value.text())
        return differ(cat("'", key, "' of table '", ours[t].find("name")->text(), "'"), other, &value);
    }
  return std::nullopt;
}

void expect_alike(const std::filesystem::path& folder, const Json& saved, const Json& here) {
  if (const Json* const what = saved.find("what"); !what || what->text() != Json(kWhat).text())
    throw Error(Kind::data, cat("'", folder.string(), "' is not a checkpoint of an embedding set"));
  if (const auto differs = difference(saved, here))
    throw Error(Kind::data, cat("'", folder.string(), "' belongs to another embedding set: ", *differs));
}

/// The path to which the complete old set is moved while a new set replaces it.
std::filesystem::path beside(const std::filesystem::path& folder, const char* end) {
  std::filesystem::path path = folder;
  if (!path.has_filename()) path = path.parent_path();
  return path += end;
}

void remove_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::remove_all(folder, problem);
  if (problem) throw Error(Kind::io, cat("cannot remove '", folder.string(), "': ", problem.message()));
}

void move_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code problem;
  std::filesystem::rename(from, to, problem);
  if (problem)
    throw Error(Kind::io, cat("cannot rename '", from.string(), "' to '", to.string(), "': ", problem.message()));
}

}  // namespace

namespace {

/// Writes the state of this rank's rows to the rank's file.
StateIndex write_rank(const std::filesystem::path& part, const EmbeddingOptions& options, Runtime& runtime,
                      const std::vector<TableOnRank>& tables, int rank, int64_t steps) {
  StateIndex index;
  index.file = cat("rank", rank, ".state");
  StateFileWriter file(part / index.file);
  const StateWriter::Sink sink = [&](HostBytes piece) { file.write_at(piece.offset, piece.span()); };
  StateWriter writer(rank, runtime.compute_stream(), index, sink, {.iteration = steps});
  for (size_t t = 0; t < tables.size(); ++t)
    if (tables[t].table && (!tables[t].place.replicated() || rank == 0))
      tables[t].table->save_state(writer.in(options.tables[t].name));
  file.commit(index);
  return index;
}

/// Loads the rows that this rank owns, from a saved set with the same tables and any number of ranks.
void load_by_key(const StateReader& from, const TableOnRank& to, const std::string& name, int ranks) {
  std::vector<StateReader> owners;
  for (int r = 0; r < from.ranks(); ++r)
    if (const StateReader table = from.of_rank(r).in(name); table.has("rows")) owners.push_back(table);
  const Placement placement = to.place.of_keys(ranks);
  SavedRows rows(to.table->spec(), [&](const RowBlock& block) {
    to.place.replicated() ? to.table->import_rows(block) : import_owned_rows(placement, from.rank(), block, *to.table);
  });
  for (const StateReader& table : owners) rows.read(table);
  rows.finish();
  // Also load the rest of the table's state: the counts and the shared row. If the rows are sharded, load it as this
  // rank. Otherwise load it as rank 0: the summed counts, and the shared row of the first file.
  to.table->load_state_by_key(owners, to.place.spread() ? from.rank() : 0, [&](int64_t key, int32_t) {
    return to.place.replicated() || placement.owner(0, key) == from.rank();
  });
}

}  // namespace

void expect_alike_on_all_ranks(Communicator& comm, const EmbeddingOptions& options) {
  Json all = about(options);
  Json::Array features, placements;
  for (const EmbeddingFeature& feature : options.features)
    features.push_back(Json::Array{feature.name, feature.table, static_cast<int64_t>(feature.pooling),
                                   static_cast<int64_t>(feature.weighted)});
  for (const EmbeddingTableOptions& table : options.tables)
    placements.push_back(
        Json::Array{static_cast<int64_t>(table.placement.where), static_cast<int64_t>(table.placement.rank)});
  all.set("features", std::move(features)).set("placements", std::move(placements));
  all.set("batches", int64_t{options.batches});
  const Json first = Json::parse(comm.broadcast(all.text(), 0), "the options of rank 0");
  const auto check = [&] {
    if (const auto differs = difference(first, all))
      throw Error(Kind::usage, cat("the embedding sets of the ranks differ: on rank 0 ", *differs));
  };
  run_on_all_ranks(comm, check, kUsingEmbeddings);
}

void save_set(const std::filesystem::path& folder, const EmbeddingOptions& options, Runtime& runtime,
              const std::vector<TableOnRank>& tables, Communicator* comm, const SetProgress& progress) {
  const bool first = rank_in(comm) == 0;
  const std::filesystem::path part = beside(folder, ".part"), old = beside(folder, ".old");
  bool there = false;
  on_all_ranks(comm, [&] {
    if (!first) return;
    there = std::filesystem::exists(folder);
    if (there && !std::filesystem::exists(folder / kManifestName) && !std::filesystem::is_empty(folder))
      throw Error(Kind::io, cat("'", folder.string(),
                                "' exists and is not a saved embedding set: name another "
                                "folder"));
    remove_folder(part);
    std::error_code problem;
    std::filesystem::create_directories(part, problem);
    if (problem) throw Error(Kind::io, cat("cannot create '", part.string(), "': ", problem.message()));
  });
  StateIndex index;
  on_all_ranks(comm, [&] { index = write_rank(part, options, runtime, tables, rank_in(comm), progress.steps); });
  std::vector<std::string> texts = {to_json(index).text()};
  if (comm) texts = comm->gather(texts[0], 0);
  on_all_ranks(comm, [&] {
    if (!first) return;
    std::vector<StateIndex> files;
    for (const std::string& text : texts) files.push_back(state_index(Json::parse(text, "the files of a set")));
    Json progress_json{Json::Object{}}, what = about(options);
    progress_json.set("updates", progress.updates).set("steps", progress.steps);
    if (comm) what.set("places", places_json(tables));
    write_manifest(part, {std::move(what), std::move(progress_json), std::move(files)});
    sync_to_disk(part);
    if (there) {
      remove_folder(old);
      move_folder(folder, old);
    }
    move_folder(part, folder);
    if (there) remove_folder(old);
  });
}

SetProgress load_set(const std::filesystem::path& folder, const EmbeddingOptions& options, Runtime& runtime,
                     const std::vector<TableOnRank>& tables, Communicator* comm) {
  SetProgress progress;
  on_all_ranks(comm, [&] {
    const Manifest manifest = read_manifest(folder);
    expect_alike(folder, manifest.about, about(options));
    if (rank_in(comm) == 0) verify_files(folder, manifest);
    const Json *const updates = manifest.progress.find("updates"), *const steps = manifest.progress.find("steps");
    if (!updates || !updates->integer() || !steps || !steps->integer())
      throw Error(Kind::data, cat("'", folder.string(), "' does not state the number of updates"));
    progress = {*updates->integer(), *steps->integer()};
    const Json* const places = manifest.about.find("places");
    const bool alike = places ? comm && places->text() == places_json(tables).text() : !comm;
    const int ranks = ranks_of(comm);
    const bool exact = alike && static_cast<int>(manifest.files.size()) == ranks;
    const StateReader reader(folder, manifest, exact, rank_in(comm), runtime.compute_stream());
    for (size_t t = 0; t < tables.size(); ++t) {
      const std::string& name = options.tables[t].name;
      if (!tables[t].table) continue;
      if (exact)
        tables[t].table->load_state(reader.of_rank(tables[t].place.replicated() ? 0 : rank_in(comm)).in(name));
      else
        load_by_key(reader, tables[t], name, ranks);
    }
  });
  return progress;
}

}  // namespace hctr
