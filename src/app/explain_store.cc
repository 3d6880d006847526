#include "app/explain_store.h"

#include <string>

#include "config/field_table.h"
#include "config/json_schema.h"
#include "core/base/expect.h"
#include "store/store_config.h"

namespace hctr {
namespace {

std::string store_text() {
  return cat("## store.json\n\nLevels and models of a store: docs/parameter_server.md.\n\n",
             field_table(store_schema().fields()));
}

std::string store_schema_text() {
  Json schema(
      Json::Object{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                   {"title", "store.json of huge_ctr"},
                   {"description", "Written by huge_ctr --explain store_schema from the program's declarations."}});
  const Json fields = json_schema_of(store_schema());
  for (const auto& [key, value] : *fields.object()) schema.set(key, value);
  return schema.text(1) + "\n";
}

}  // namespace

ManualEntries store_entries() { return {{"store", store_text}, {"store_schema", store_schema_text}}; }

}  // namespace hctr
