// The decisions that rules make about a step, and the list of rules. Each rule is one file, which gives its reason and
// its measured gain.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/plan/step_facts.h"

namespace hctr {

/// The default: everything runs on the compute stream, in the order of the calls. Each field is set by one rule.
struct StepChoices {
  bool lookups_aside = false;  ///< look-ups run on the exchange stream, concurrently with the first layers
  std::optional<ops::MultiprocessorShares> shares{};  ///< for the first layers and the concurrent look-up
  std::vector<size_t> element_tables{};               ///< tables that run on a separate stream
  bool tables_merged = false;                         ///< kernels of one kind of several tables are launched as one
  bool layers_aside = false;  ///< layers with LayerFacts::concurrent_until run on a separate stream
  bool copies_early = false;  ///< transposed copies of weights are written before the look-up, or concurrently with it
  bool wgrads_aside = false;  ///< WeightGradientRun::apart has a separate stream
  /// [layer] its gradients and those of later layers are read here: none may be deferred
  std::vector<bool> reads_wgrads{};
  std::optional<size_t> held_from{};  ///< wgrads from this layer on wait for the gradients of embeddings
  /// the embedding dgrad reduction of the first reader starts after this layer's dgrad
  size_t reduction_behind = 0;
  /// deferred wgrad GEMMs run before bias gradients, which get the weights stream
  bool products_first = false;
  /// the overflow check reads the operands of the last wgrads instead of the wgrads
  bool skip_known_early = false;
  bool prefetch_at_embeddings = false;  ///< the next batch is looked up once embedding gradients are complete
  bool keys_ahead = false;              ///< keys are exchanged one batch ahead, on a separate stream
  bool outside = false;                 ///< exchanges are not part of the recording
};

/// `decide` sets its fields of the choices, which no earlier rule has set. Returns whether the rule applies.
struct StepRule {
  const char* name;
  const char* reason;
  const char* gain;  ///< as measured
  bool (*decide)(const StepFacts&, StepChoices&);
};

// In the order in which they decide.
extern const StepRule kExchangesOutside, kMergedTables, kElementTables, kConcurrentLookup, kLookupShares,
    kConcurrentLayers, kEarlyWeightCopies, kDeferredWgrads, kWgradsBehindEmbeddings, kReductionBehindDgrad,
    kProductsFirst, kSkipKnownEarly, kPrefetchAtEmbeddings, kKeysAhead;

std::span<const StepRule* const> step_rules();

}  // namespace hctr
