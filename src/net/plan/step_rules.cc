#include "net/plan/step_choices.h"

namespace hctr {

std::span<const StepRule* const> step_rules() {
  static const StepRule* const kRules[] = {
      &kExchangesOutside, &kMergedTables,      &kElementTables,  &kConcurrentLookup,       &kLookupShares,
      &kConcurrentLayers, &kEarlyWeightCopies, &kDeferredWgrads, &kWgradsBehindEmbeddings, &kReductionBehindDgrad,
      &kProductsFirst,    &kSkipKnownEarly,    &kKeysAhead,      &kPrefetchAtEmbeddings};
  return kRules;
}

}  // namespace hctr
