// What files that a Data layer names, and that are no data, say of its encoding.
#pragma once

#include <string>

#include "config/json.h"
#include "formats/data/data_section.h"

namespace hctr {

/// An object of texts by place: of each slot with a vocabulary how many values that has and their hash, as
/// {"csv/slots/1/vocabulary": "30 values, hash 1f..."}; of a feature specification the features of labels, dense values
/// and slots. Empty where the encoding needs no file. Errors: those of reading the files.
Json encoding_contents(const DataSection&);

/// What differs from the contents that the description of a model's training data holds as "encoding", each with its
/// place and both texts; empty where nothing does, or there is no such description, or a file is not there.
std::string changed_contents(const Json* saved_data, const DataSection&);

}  // namespace hctr
