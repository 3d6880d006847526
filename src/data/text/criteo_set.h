// Criteo's click logs as a set of samples: the features and keys that criteo2hugectr writes for the same options.
#pragma once

#include <memory>

#include "data/text/criteo_features.h"
#include "data/text/text_set.h"

namespace hctr {

void check_criteo_section(const DataSection&, const std::string& pointer, Problems&);

CriteoStyle criteo_style(const CriteoPart&);
TextFormat criteo_format(const DataSection&);

std::unique_ptr<SampleSet> open_criteo_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
