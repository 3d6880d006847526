// The parts of a data encoding that lie in files a Data layer names, such as vocabularies.
#pragma once

#include <string>

#include "config/json.h"
#include "formats/data/data_section.h"

namespace hctr {

/// An object of texts by place: for each slot with a vocabulary the number of its values and their hash, as
/// {"csv/slots/1/vocabulary": "30 values, hash 1f..."}; for a feature specification the features of labels, dense
/// values and slots. Empty if the encoding needs no file. Errors: those of reading the files.
Json encoding_contents(const DataSection&);

/// The differences from the contents saved as "encoding" in the description of a model's training data, each with its
/// place and both texts. Empty if there is none, no such description, or a missing file.
std::string changed_contents(const Json* saved_data, const DataSection&);

}  // namespace hctr
