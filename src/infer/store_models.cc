#include "infer/store_models.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/expect.h"
#include "core/base/thread_pool.h"
#include "core/comm/self_comm.h"
#include "formats/model/model_manifest.h"
#include "infer/config_of_model.h"
#include "infer/loaded_model.h"
#include "infer/saved_model.h"
#include "ops/gemm/blas.h"

namespace hctr {
namespace {

StoreTableSource source_of(const StoreTableSection& from) {
  StoreTableSource source{.name = from.name,
                          .dim = from.dim,
                          .by_slot = from.by_slot,
                          .default_value = static_cast<float>(from.default_value),
                          .model_file = from.model_file,
                          .file = from.file,
                          .keys = from.keys,
                          .vectors = from.vectors,
                          .random = {from.random_rows, static_cast<uint64_t>(from.seed)},
                          .in_level = from.in_level};
  if (from.sources() == 0) source.rows = [](const StoreRowSink&) {};
  return source;
}

/// A function that passes the rows of table `e` of a checkpoint to a sink.
std::function<void(const StoreRowSink&)> rows_of_checkpoint(std::shared_ptr<LoadedModel> model, size_t e) {
  return [model, e](const StoreRowSink& sink) {
    model->replica().embedding(e).export_rows(
        false, [&](const RowBlock& block) { sink(block.slots, block.keys, block.vectors); });
  };
}

/// `model` is the last member, because it must be destroyed before its communicator.
struct LoadedAlone {
  SelfComm comm;
  std::optional<LoadedModel> model;
};

void add_tables_of_model(const std::string& name, const Surroundings& around, const Log& log, bool loads,
                         StoreModel& to) {
  ModelOptions options;
  options.model = name;
  options.device = DeviceChoice::cpu;
  options.surroundings = around;
  const Config config = config_of_model(options, log);
  const SavedModel saved = find_saved_model(name, config, around.environment, log);
  to.iteration = saved.iteration;
  if (!saved.dense.empty())
    if (const auto manifest = manifest_of(saved.dense)) to.run = manifest->run;
  std::shared_ptr<LoadedModel> loaded;
  if (saved.checkpoint && loads) {
    ops::load_blas(around);
    const auto alone = std::make_shared<LoadedAlone>();
    alone->model.emplace(config, saved, alone->comm, LoadOnRank{.threads = usable_cores()}, log);
    loaded = std::shared_ptr<LoadedModel>(alone, &*alone->model);
  }
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const EmbeddingSection& section = config.embeddings[e].section;
    StoreTableSource table{.name = section.top(), .dim = section.dim, .by_slot = section.identity_by_slot()};
    if (loaded)
      table.rows = rows_of_checkpoint(loaded, e);
    else if (saved.checkpoint)
      table.rows = [](const StoreRowSink&) { HCTR_EXPECT(false, "rows of a checkpoint need the loaded checkpoint"); };
    else
      table.model_file = saved.tables.at(e);
    to.tables.push_back(std::move(table));
  }
}

void catch_up_with_stream(Store& store, const StoreModelSection& section, const Log& log) {
  constexpr double kWaitForBroker = 10;  // in seconds
  StoreStream stream(store, section.name, section.stream_options());
  try {
    stream.catch_up(kWaitForBroker);
    if (const std::string trouble = stream_trouble(stream.statistics()); !trouble.empty())
      log.warning("stream of model '", section.name, "': ", trouble);
  } catch (const Error& error) {
    if (error.kind() != Kind::io) throw;
    log.warning("updates of model '", section.name, "' are not read: ", error.what());
  }
}

StoreModel model_of_section(const StoreModelSection& from, const Surroundings& around, const Log& log, bool loads) {
  StoreModel model{.name = from.name,
                   .version = from.version,
                   .on_miss = from.miss_is_error ? OnMiss::error : OnMiss::default_vector,
                   .progress = around.progress,
                   .tables = {}};
  for (const StoreTableSection& table : from.tables) {
    model.tables.push_back(source_of(table));
    // a table without sources starts empty, so the first delta must build on iteration 0
    if (table.sources() == 0) model.iteration = 0;
  }
  if (!from.model.empty()) add_tables_of_model(from.model, around, log, loads, model);
  return model;
}

/// Waits until the process that updates shared memory has loaded the models of this config. Returns whether this
/// process must load models, because that process has ended or there is none.
bool must_load(Store& store, const StoreConfig& config, const Log& log) {
  const auto lacks = [&store](const StoreModelSection& section) { return !store.has(section.name, section.version); };
  for (bool first = true;; first = false) {
    const bool loads = store.loading();  // read before refresh(): if false, refresh() shows all models
    store.refresh();
    if (store.writable()) return true;
    const auto missing = std::ranges::find_if(config.models, lacks);
    if (missing == config.models.end()) return false;
    if (!loads)
      throw Error(Kind::config, cat("the process that updates the shared memory '", config.shared_memory,
                                    "' has not loaded version '", missing->version, "' of model '", missing->name,
                                    "': processes that share memory need the same models"));
    if (first) log.info("waiting for the process that loads the shared memory '", config.shared_memory, "'");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

StoreModel store_model(const StoreModelSection& from, const Surroundings& around, const Log& log) {
  return model_of_section(from, around, log, true);
}

StoreModel store_model_unloaded(const StoreModelSection& from, const Surroundings& around, const Log& log) {
  return model_of_section(from, around, log, false);
}

void load_store_models(Store& store, const StoreConfig& config, const Surroundings& around) {
  const Log log(around.log);
  if (!config.shared_memory.empty() && !must_load(store, config, log)) return;
  for (const StoreModelSection& section : config.models) {
    // only the process that updates this store loads models
    if (!config.writable() && store.has(section.name)) continue;
    if (!store.has(section.name, section.version)) store.load(store_model(section, around, log));
    if (store.view(section.name).version() != section.version) store.activate(section.name, section.version);
    if (!section.updates.empty()) store.update(section.name, section.updates);
    if (section.stream.given && config.writable()) catch_up_with_stream(store, section, log);
  }
  store.loaded();
}

std::string stream_trouble(const StoreStreamStatistics& now) {
  const StreamStatistics& of = now.stream;
  if (of.damaged == 0 && of.missing == 0 && of.given_up == 0 && (of.held == 0 || of.behind > 0)) return "";
  return cat(of.damaged, " messages damaged, ", of.missing, " missing, ", of.given_up, " deltas given up, ", of.held,
             " waiting");
}

ConfiguredStore open_configured_store(const std::filesystem::path& file, const std::string& text, bool loads,
                                      const Surroundings& around) {
  std::vector<std::string> notes;
  StoreConfig config = text.empty() ? read_store_config(file, notes)
                                    : parse_store_config(Json::parse(text, file.string()), file.string(), notes);
  const Log log(around.log);
  for (const std::string& note : notes) log.info(note);
  Store store(config.options());
  if (loads)
    load_store_models(store, config, around);
  else
    store.loaded();
  return {std::move(config), std::move(store)};
}

Store open_store(const std::filesystem::path& file, const std::string& text, bool loads, const Surroundings& around) {
  ConfiguredStore opened = open_configured_store(file, text, loads, around);
  const Log log(around.log);
  for (const StoreModelSection& section : opened.config.models)
    if (section.stream.given)
      log.warning("the stream of model '", section.name, "' is read ", loads ? "once, when the store opens" : "not",
                  ": use a StoreStream or huge_ctr store follow to apply later updates");
  return std::move(opened.store);
}

}  // namespace hctr
