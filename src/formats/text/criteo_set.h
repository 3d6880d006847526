// Criteo's click logs as a SampleSet. Features and keys are those of criteo2hugectr with the same options.
#pragma once

#include "formats/data/format_type.h"
#include "formats/text/criteo_features.h"
#include "formats/text/text_set.h"

namespace hctr {

inline constexpr DataFormat kCriteoFormat{"Criteo"};

template <>
struct EnumWords<Wide> {
  static const std::vector<std::pair<std::string, Wide>>& table();
};
template <>
struct EnumWords<Integers> {
  static const std::vector<std::pair<std::string, Integers>>& table();
};

/// The options of criteo2hugectr, under the same names.
struct CriteoTextOptions {
  Wide wide = Wide::none;
  Integers integers = Integers::dense;
  int64_t buckets = 0, key_bits = 64;
};

FormatType criteo_format();

CriteoStyle criteo_style(const CriteoTextOptions&);
inline const TextGrammar kCriteoGrammar{.delimiter = '\t', .quote = 0};
/// Returns the text format of a section. `labels_optional`: as in Source.
TextFormat criteo_text_format(const DataSection&, bool labels_optional = false);

}  // namespace hctr
