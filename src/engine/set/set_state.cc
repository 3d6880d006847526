#include "engine/set/set_state.h"

#include "config/json.h"
#include "core/base/expect.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/manifest.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"

namespace hctr {
namespace {

constexpr const char* kWhat = "embedding set";
constexpr const char* kFile = "rank0.state";

/// What must be alike for a state to be taken: all that decides the numbers of a table.
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

void expect_alike(const std::filesystem::path& folder, const Json& saved, const Json& here) {
  const auto differs = [&](const std::string& what, const Json* there, const Json* ours) {
    throw Error(Kind::data, cat("'", folder.string(), "' is of another set: ", what, " is ",
                                there ? there->text() : "not there", ", and here ", ours ? ours->text() : "not there"));
  };
  const Json* const what = saved.find("what");
  if (!what || what->text() != Json(kWhat).text())
    throw Error(Kind::data, cat("'", folder.string(), "' is not of an embedding set"));
  if (saved.find("seed")->text() != here.find("seed")->text())
    differs("the seed", saved.find("seed"), here.find("seed"));
  const Json::Array &there = *saved.find("tables")->array(), &ours = *here.find("tables")->array();
  if (there.size() != ours.size())
    differs("the number of tables", std::make_unique<Json>(static_cast<int64_t>(there.size())).get(),
            std::make_unique<Json>(static_cast<int64_t>(ours.size())).get());
  for (size_t t = 0; t < ours.size(); ++t)
    for (const auto& [key, value] : *ours[t].object()) {
      const Json* const saved_value = there[t].find(key);
      if (!saved_value || saved_value->text() != value.text())
        differs(cat("'", key, "' of table '", ours[t].find("name")->text(), "'"), saved_value, &value);
    }
}

/// Where a set is, whole, while a newer one takes its place.
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

void save_set(const std::filesystem::path& folder, const EmbeddingOptions& options, Runtime& runtime,
              const std::vector<EmbeddingTable*>& tables, const SetProgress& progress) {
  const bool there = std::filesystem::exists(folder);
  if (there && !std::filesystem::exists(folder / kManifestName) && !std::filesystem::is_empty(folder))
    throw Error(Kind::io, cat("'", folder.string(), "' exists and is no embedding set: name another folder"));
  const std::filesystem::path part = beside(folder, ".part"), old = beside(folder, ".old");
  remove_folder(part);
  std::error_code problem;
  std::filesystem::create_directories(part, problem);
  if (problem) throw Error(Kind::io, cat("cannot create '", part.string(), "': ", problem.message()));
  StateIndex index;
  index.file = kFile;
  StateFileWriter file(part / kFile);
  const StateWriter::Sink sink = [&](HostBytes piece) { file.write_at(piece.offset, piece.span()); };
  StateWriter writer(0, runtime.compute_stream(), index, sink, {.iteration = progress.steps});
  for (EmbeddingTable* table : tables) table->save_state(writer.in(table->spec().name));
  file.commit(index);
  Json json{Json::Object{}};
  json.set("updates", progress.updates).set("steps", progress.steps);
  write_manifest(part, {about(options), std::move(json), {std::move(index)}});
  sync_to_disk(part);
  if (there) {
    remove_folder(old);
    move_folder(folder, old);
  }
  move_folder(part, folder);
  if (there) remove_folder(old);
}

SetProgress load_set(const std::filesystem::path& folder, const EmbeddingOptions& options, Runtime& runtime,
                     const std::vector<EmbeddingTable*>& tables) {
  const Manifest manifest = read_manifest(folder);
  expect_alike(folder, manifest.about, about(options));
  verify_files(folder, manifest);
  const Json *const updates = manifest.progress.find("updates"), *const steps = manifest.progress.find("steps");
  if (!updates || !updates->integer() || !steps || !steps->integer())
    throw Error(Kind::data, cat("'", folder.string(), "' does not say how many updates it has had"));
  const StateReader reader(folder, manifest, true, 0, runtime.compute_stream());
  for (EmbeddingTable* table : tables) table->load_state(reader.in(table->spec().name));
  return {*updates->integer(), *steps->integer()};
}

}  // namespace hctr
