#include "core/device/scoring_scope.h"

namespace hctr {
namespace {

thread_local const ScoringRules* rules_of_thread = nullptr;

}  // namespace

ScoringScope::ScoringScope(const ScoringRules& rules) : before_(rules_of_thread) { rules_of_thread = &rules; }
ScoringScope::~ScoringScope() { rules_of_thread = before_; }

const ScoringRules* ScoringScope::rules() { return rules_of_thread; }

}  // namespace hctr
