// Fuzz entry for the untrusted input of preprocess --apply: preprocess.json and vocabulary.bin.
#include "fuzz/model_entry_tools.h"
#include "prepare/preprocess/saved_columns.h"

namespace hctr::fuzz {

void saved_columns(Bytes bytes) {
  const auto [json, vocabularies] = split_at_zero(bytes);
  const fs::path path = model_folder().write("preprocess.json", json);
  model_folder().write(kVocabularyFile, vocabularies);
  try {
    const SavedColumns saved = read_columns(path, Log::silent());
    expect(saved.passes != 2 || saved.fitted.vocabularies.size() ==
                                    saved.crosses.size() + saved.roles.categories.size() + saved.roles.lists.size());
  } catch (const Error& error) {
    expect(error.kind() == Kind::data || error.kind() == Kind::io || error.kind() == Kind::config);
  }
}

}  // namespace hctr::fuzz
