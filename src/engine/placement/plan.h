// The placement plan: assigns rows to ranks by table sizes, key statistics and measured machine speeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/placement/placement.h"

namespace hctr {

/// The properties of a slot that the plan depends on.
struct PlanSlot {
  int64_t rows = 0;     ///< from the config, or the number seen so far; 0: unknown
  double keys = 1;      ///< keys per sample
  double distinct = 0;  ///< distinct keys per batch; 0: unknown
  int64_t vectors = 1;  ///< vectors per sample; 1 if keys are pooled
};

struct PlanTable {
  std::string name;
  PlacementRule rule = PlacementRule::localized;
  bool as_without_plan = false;  ///< forces Placement::without_plan(), because a row limit assumes that placement
  bool identity_by_slot = true;  ///< false: all slots share rows and have one owner
  bool may_be_cut = false;       ///< see TableSpec::may_be_cut
  /// whether all keys are known; with identity_by_slot, single slots can be replicated too
  bool may_be_replicated = false;
  int64_t dim = 0;
  int64_t number_bytes = 4;  ///< bytes per element of exchanged vectors
  int64_t row_bytes = 0;     ///< bytes of a vector, its optimizer states and its index entry
  std::vector<PlanSlot> slots;
};

/// The speeds of the machine, measured or assumed.
struct MachineSpeeds {
  double link = 10e9;          ///< bytes per second that one rank sends in an all-to-all
  double link_seconds = 5e-6;  ///< latency of an all-to-all
  double sums = 5e9;           ///< bytes per second of an all-reduce
  double sums_seconds = 5e-6;
  double rows = 20e9;  ///< bytes per second in a gather of random rows
  int64_t memory = 0;  ///< minimum over ranks of free bytes; 0: unknown
};

struct PlanProblem {
  int64_t ranks = 1;
  int64_t batch = 0;  ///< samples of all ranks together
  MachineSpeeds speeds;
  std::vector<PlanTable> tables;
};

/// Chooses the owners of every table. Slots are placed one by one, the most expensive first (ties: the lower table,
/// then the lower slot), on the least loaded rank with enough memory (ties: the lower rank). If the rule is automatic:
///  - a slot is sharded by key if sharding helps and the slot alone would exceed the average load of a rank, or if no
///    rank has enough memory for it;
///  - a table whose keys are known is replicated, or only those of its slots for which replication is less work;
///  - vectors are cut into pieces (multiples of four elements): the smallest number of pieces with the best result.
/// The last two apply only if they reduce the load of the busiest rank and save a tenth of the seconds of the table.
///
/// The cost of a slot in a step has three parts: sending its vectors forward and their gradients backward; sending its
/// keys; and the memory accesses of lookups, gradient sums and updates. A replicated slot instead costs each rank the
/// all-reduce of its gradients. In addition, a table costs the latency of its all-to-alls and all-reduces.
std::vector<Placement> make_plan(const PlanProblem&);

/// The rows of one table on one rank.
struct RankPlan {
  int32_t rank = 0;
  std::string table;
  std::vector<int32_t> slots;  ///< slots that the rank owns completely
  int64_t cut_slots = 0;       ///< number of slots whose vectors are split, and of which this rank owns some pieces
  int64_t spread_slots = 0;  ///< number of slots that are sharded by key, so that this rank owns the rows of some keys
  int64_t rows = 0, bytes = 0;  ///< the rows and bytes that are known
  double seconds = 0;           ///< expected seconds per step
};

/// Returns the plan per rank and table, sorted by rank, then by table. Omits tables of which the rank has no rows.
std::vector<RankPlan> rank_plans(const PlanProblem&, const std::vector<Placement>&);

}  // namespace hctr
