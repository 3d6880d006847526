// What the rules decide of a step, and the rules. Each rule is one file, which says why, and what it gained when it was
// measured.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/plan/step_facts.h"

namespace hctr {

/// The default: everything runs on the compute stream, in the order of the calls. Each field is set by one rule.
struct StepChoices {
  bool lookups_aside = false;  ///< look-ups run on the exchange stream while the first layers run
  std::optional<ops::MultiprocessorShares> shares{};  ///< of the first layers, and of the look-up beside them
  std::vector<size_t> element_tables{};               ///< tables on a stream of their own
  bool tables_merged = false;                         ///< kernels of one kind of several tables start as one
  bool layers_aside = false;  ///< layers with LayerFacts::concurrent_until run on a stream of their own
  bool copies_early = false;  ///< transposed copies of weights are written before the look-up begins, or beside it
  bool wgrads_aside = false;  ///< WeightGradientRun::apart has a stream of its own
  std::vector<bool> reads_wgrads{};     ///< [layer] its gradients, and those behind it, are read: nothing may be left
  std::optional<size_t> held_from{};    ///< gradients of weights from this layer on wait for those of embeddings
  size_t reduction_behind = 0;          ///< the layer behind whose dgrad the first reader's tables sum their gradients
  bool products_first = false;          ///< at the end, before sums of biases, which then have the weights stream
  bool skip_known_early = false;        ///< operands are searched in place of the gradients of weights that come last
  bool prefetch_at_embeddings = false;  ///< the next batch is looked up once gradients of embeddings are complete
  bool keys_ahead = false;              ///< keys of the batch behind the next are exchanged, on a stream of their own
  bool outside = false;                 ///< exchanges stay outside of what is recorded
};

/// `decide` sets its fields of the choices, which rules before it have not set. Returns whether the rule applies.
struct StepRule {
  const char* name;
  const char* reason;
  const char* gain;  ///< as it was measured
  bool (*decide)(const StepFacts&, StepChoices&);
};

// In the order in which they decide.
extern const StepRule kExchangesOutside, kMergedTables, kElementTables, kConcurrentLookup, kLookupShares,
    kConcurrentLayers, kEarlyWeightCopies, kDeferredWgrads, kWgradsBehindEmbeddings, kReductionBehindDgrad,
    kProductsFirst, kSkipKnownEarly, kPrefetchAtEmbeddings, kKeysAhead;

std::span<const StepRule* const> step_rules();

}  // namespace hctr
