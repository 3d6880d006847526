#include "app/store_command.h"

#include <algorithm>

#include "app/store_follow.h"
#include "config/problems.h"
#include "core/base/expect.h"
#include "core/base/log.h"
#include "hctr/store.h"
#include "infer/store_models.h"
#include "program/terminal.h"
#include "store/store_config.h"

namespace hctr {
namespace {

void print_store(const Store& store) {
  for (const StoreModelStatistics& model : store.models()) {
    print(cat("model '", model.model, "' version '", model.version, "'", model.active ? ", active" : ""));
    if (model.iteration >= 0) print(cat(", iteration ", model.iteration));
    print(cat(", updates ", model.updates, ", rows changed ", model.updated_rows, ", removed ", model.removed_rows,
              ", deltas waiting ", model.waiting));
    if (model.age_seconds >= 0) print(cat(", newest delta ", model.age_seconds, " s old"));
    print("\n");
    for (const StoreTableStatistics& table : store.tables()) {
      if (table.model != model.model || table.version != model.version) continue;
      print(cat("  table '", table.table, "': ", table.rows, " rows"));
      for (const auto& level : table.levels)
        print(cat("; ", level.name, " ", level.rows, " rows, ", level.bytes, " bytes",
                  level.failed > 0 ? cat(", ", level.failed, " failed") : std::string()));
      print("\n");
    }
  }
}

void print_rows_of(const Store& store, const std::string& model, const std::string& table,
                   const std::vector<int64_t>& keys, int slot) {
  const StoreView view = store.view(model);
  const size_t number = table.empty() && view.tables().size() == 1 ? 0 : view.table(table);
  const auto dim = static_cast<size_t>(view.tables()[number].dim);
  std::vector<float> rows(keys.size() * dim);
  std::vector<uint8_t> found(keys.size());
  view.get(number, keys, rows.data(), 0, found.data(), slot);
  for (size_t i = 0; i < keys.size(); ++i) {
    print(cat(keys[i], found[i] ? "" : " (no row)"));
    for (size_t e = 0; e < dim; ++e) print_formatted(" %.9g", static_cast<double>(rows[i * dim + e]));
    print("\n");
  }
}

}  // namespace

StoreCommand::StoreCommand(CommandLine& app) {
  app.add_option("--store-model", model_, "With get: the model; default: the store's only one").type_name("NAME");
  app.add_option("--table", table_, "With get: the table; default: the model's only one").type_name("NAME");
  app.add_option("--keys", keys_, "With get: the keys whose rows are printed; separate several with commas")
      .type_name("KEY")
      .comma_separated();
  app.add_option("--slot", slot_, "With get: the slot, if rows are identified by slot and key").non_negative();
}

int StoreCommand::run(const std::vector<std::string>& arguments, const Surroundings& around) {
  const std::string& what = arguments.at(0);
  const std::vector<std::string> words = {"load", "follow", "get", "stats", "verify", "compact"};
  if (std::find(words.begin(), words.end(), what) == words.end())
    throw Error(Kind::usage,
                cat("huge_ctr store expects ", one_of(words), ", not '", what, "'", did_you_mean(what, words)));
  std::vector<std::string> notes;
  const StoreConfig config = read_store_config(arguments.at(1), notes);
  for (const std::string& note : notes) print_note(cat(note, "\n"));
  if (!config.lasts() && (what == "verify" || what == "compact"))
    throw Error(Kind::usage,
                cat("store ", what, ": '", arguments[1], "' has no \"folder\" of files and no \"rocksdb\""));
  Store store(config.options());
  // A store that exists only in memory is empty when the program starts, so every command loads the config's models. A
  // store on disk already contains the models that "store load" wrote.
  if (what == "load" || what == "follow" || !config.lasts() || !config.writable())
    load_store_models(store, config, around);
  if (what == "follow") return follow_streams(store, config, Log(around.log));
  if (what == "get") {
    if (keys_.empty()) throw Error(Kind::usage, "store get needs --keys");
    const std::vector<StoreModelStatistics> models = store.models();
    if (models.empty())
      throw Error(Kind::usage,
                  "the store has no model: huge_ctr store load FILE.json loads the "
                  "models that the file names");
    print_rows_of(store, model_.empty() ? models[0].model : model_, table_, keys_, slot_);
    return 0;
  }
  if (what == "verify") print(cat(store.verify(), " rows have correct checksums\n"));
  if (what == "compact") print(cat(store.compact(), " bytes freed\n"));
  if (what == "load" || what == "stats") print_store(store);
  return 0;
}

}  // namespace hctr
