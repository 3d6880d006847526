#include "app/check_store.h"

#include <vector>

#include "core/base/expect.h"
#include "core/base/log.h"
#include "infer/store_models.h"
#include "program/terminal.h"
#include "store/store_bill.h"

namespace hctr {

bool is_store_config(const Json& json) {
  if (!json.object() || json.find("layers") || json.find("solver") || json.find("include")) return false;
  for (const char* key : {"models", "folder", "memory", "shared_memory", "most_rows", "gpu_cache", "supportlonglong"})
    if (json.find(key)) return true;
  return false;
}

void check_store(const std::string& file, bool as_json, const Surroundings& around) {
  std::vector<std::string> notes;
  const StoreConfig config = read_store_config(file, notes);
  for (const std::string& note : notes) print_note(cat(note, "\n"));
  std::vector<StoreModel> models;
  for (const StoreModelSection& section : config.models)
    models.push_back(store_model_unloaded(section, around, Log(around.log)));
  const StoreBill bill = store_bill(config, models);
  print(as_json ? bill.json().text(2) + "\n" : bill.text());
  if (bill.in_memory() > bill.free_memory)
    throw Error(Kind::config, cat(file, ": the tables take ", bill.in_memory(), " bytes of memory, but ",
                                  bill.free_memory, " are free: ",
                                  config.folder.empty() ? "set \"folder\" to keep rows in files, and \"most_rows\" to "
                                                          "limit the rows in memory"
                                                        : "set a lower \"most_rows\", or \"memory\": false"));
  if (bill.free_gpu_memory >= 0 && bill.on_gpu() > bill.free_gpu_memory)
    throw Error(Kind::config,
                cat(file, ": the GPU cache takes ", bill.on_gpu(), " bytes of GPU memory, but ", bill.free_gpu_memory,
                    " are free: set lower \"bytes\", \"most_rows\" or \"share\" of "
                    "\"gpu_cache\""));
  if (!as_json) print(file + ": OK\n");
}

}  // namespace hctr
