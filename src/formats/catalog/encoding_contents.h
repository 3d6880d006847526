// Summarizes the files that determine how data are encoded, such as vocabularies.
#pragma once

#include <string>

#include "config/json.h"
#include "formats/data/data_section.h"

namespace hctr {

/// A JSON object with a text for each field of the config that names a file, by the path of the field. For each slot
/// with a vocabulary: the number of values and their hash, such as
/// {"csv/slots/1/vocabulary": "30 values, hash 1f..."}. For a feature specification: the features of labels, dense
/// values and slots. Empty if the encoding uses no files. Errors: those of reading the files.
Json encoding_contents(const DataSection&);

/// Describes how encoding_contents() differ from the "encoding" saved with a model: each path with its old and new
/// text. Empty if nothing differs, the model has no "encoding", or a file is missing.
std::string changed_contents(const Json* saved_data, const DataSection&);

}  // namespace hctr
