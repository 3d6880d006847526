// The decisions that rules make about a step, and the list of rules. Each rule has its own file, with its reason and
// its measured gain.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/plan/step_facts.h"

namespace hctr {

/// By default everything runs on the compute stream in call order. Exactly one rule sets each field.
struct StepChoices {
  bool lookups_aside = false;  ///< look-ups run on the exchange stream, concurrently with the first layers
  /// split of the multiprocessors between the first layers and the concurrent look-up
  std::optional<ops::MultiprocessorShares> shares{};
  std::vector<size_t> element_tables{};  ///< tables that run on a separate stream
  /// if several tables need the same kernel, one launch runs it for all of them
  bool tables_merged = false;
  bool layers_aside = false;  ///< layers with LayerFacts::concurrent_until run on a separate stream
  bool copies_early = false;  ///< transposed copies of weights are written before the look-up or concurrently with it
  bool wgrads_aside = false;  ///< wgrads with WeightGradientRun::apart run on a separate stream
  /// [layer] whether a penalty or an all-reduce reads this layer's wgrads during the backward pass. If so, the wgrads
  /// of this layer and of all later layers must be complete by then
  std::vector<bool> reads_wgrads{};
  /// the wgrads of this layer, and of all layers after it in backward order, run after the gradients of embeddings
  std::optional<size_t> held_from{};
  /// the embedding dgrad reduction of the first reader starts after the dgrad of this layer
  size_t reduction_behind = 0;
  /// deferred wgrad GEMMs are queued first, on the compute stream; deferred bias gradients overlap them on the weights
  /// stream
  bool products_first = false;
  /// the overflow check reads the operands of the last wgrads instead of the wgrads
  bool skip_known_early = false;
  bool prefetch_at_embeddings = false;  ///< the next batch is looked up once embedding gradients are complete
  bool keys_ahead = false;              ///< keys are exchanged one batch ahead, on a separate stream
  bool outside = false;                 ///< exchanges run outside of the recording
};

/// A rule. `decide` sets the rule's own fields of the choices, which no earlier rule has set. Returns whether the rule
/// applies.
struct StepRule {
  const char* name;
  const char* reason;
  const char* gain;  ///< the measured gain
  bool (*decide)(const StepFacts&, StepChoices&);
};

// The rules, in the order in which they decide.
extern const StepRule kExchangesOutside, kMergedTables, kElementTables, kConcurrentLookup, kLookupShares,
    kConcurrentLayers, kEarlyWeightCopies, kDeferredWgrads, kWgradsBehindEmbeddings, kReductionBehindDgrad,
    kProductsFirst, kSkipKnownEarly, kPrefetchAtEmbeddings, kKeysAhead;

std::span<const StepRule* const> step_rules();

}  // namespace hctr
