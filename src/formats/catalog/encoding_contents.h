// Summarizes the files that determine how data are encoded, such as vocabularies.
#pragma once

#include <string>

#include "config/json.h"
#include "formats/data/data_section.h"

namespace hctr {

/// Returns a JSON object with a text for each field of the config that names a file. The name of a member is the path
/// of that field. For a slot with a vocabulary, the text has the number of values and their hash:
/// {"csv/slots/1/vocabulary": "30 values, hash 1f..."}. For a feature specification, the text has the features of
/// labels, dense values and slots. The object is empty if the encoding uses no files. Errors: those of reading the
/// files.
Json encoding_contents(const DataSection&);

/// Describes how encoding_contents() differs from the "encoding" saved with a model: each path that differs, with its
/// old and new text. Returns "" if nothing differs, the model has no "encoding", or a file is missing.
std::string changed_contents(const Json* saved_data, const DataSection&);

}  // namespace hctr
