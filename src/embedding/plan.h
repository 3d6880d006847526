// The plan: which rank gets which rows, chosen from sizes, from what keys do, and from what this machine moves in a
// second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "embedding/placement.h"

namespace hctr {

/// One slot as the plan sees it.
struct PlanSlot {
  int64_t rows = 0;     ///< known from the config, or seen so far; 0: nothing is known
  double keys = 1;      ///< of a sample
  double distinct = 0;  ///< different keys of a batch; 0: not known
  int64_t vectors = 1;  ///< that a sample gets: 1 where keys are pooled
};

struct PlanTable {
  std::string name;
  PlacementRule rule = PlacementRule::localized;
  bool as_without_plan = false;    ///< a limit speaks of the rows that a rank has without a plan
  bool identity_by_slot = true;    ///< else all slots share rows, and have one owner
  bool may_be_cut = false;         ///< TableSpec::may_be_cut
  bool may_be_replicated = false;  ///< its keys are known; slots alone where rows belong to slots
  int64_t dim = 0;
  int64_t number_bytes = 4;  ///< of a number of a vector on its way
  int64_t row_bytes = 0;     ///< of a vector, its optimizer states and its place in the index
  std::vector<PlanSlot> slots;
};

/// What the machine does, measured or assumed.
struct MachineSpeeds {
  double link = 10e9;          ///< bytes a second that one rank gives to the others in an all-to-all
  double link_seconds = 5e-6;  ///< of one that carries nearly nothing
  double sums = 5e9;           ///< bytes a second of an all-reduce
  double sums_seconds = 5e-6;
  double rows = 20e9;  ///< bytes a second of rows gathered at random
  int64_t memory = 0;  ///< bytes free on the rank that has least; 0: not known
};

struct PlanProblem {
  int64_t ranks = 1;
  int64_t batch = 0;  ///< samples of all ranks together
  MachineSpeeds speeds;
  std::vector<PlanTable> tables;
};

/// The owners of every table. Slots are placed one by one, the most expensive first (of equals that of the lower table
/// and number), on the rank that has least to do and room for it (of equals the first). Where the rule is automatic, a
/// slot is spread by key when it alone would keep a rank busier than all would be on average, and being spread helps;
/// or when no rank has room for it. There, too, a table whose keys are known is put on every rank, or those of its
/// slots that make less work there; and vectors are cut (into multiples of four elements), into the fewest pieces that
/// do as much as more would. All that where it makes the busiest rank less busy and saves a tenth of the table's
/// seconds. What a slot costs a step: its vectors over the link, there and back; its keys; and the memory that lookups,
/// sums of gradients and updates touch. Slots whose rows every rank has cost each the sum of their gradients instead. A
/// table costs, beside, what an exchange, or a sum, of nearly nothing takes.
std::vector<Placement> make_plan(const PlanProblem&);

/// What one rank has of one table.
struct RankPlan {
  int32_t rank = 0;
  std::string table;
  std::vector<int32_t> slots;   ///< with all their rows
  int64_t cut_slots = 0;        ///< of which it has some pieces of all rows
  int64_t spread_slots = 0;     ///< of which it has the rows of some keys
  int64_t rows = 0, bytes = 0;  ///< as far as they are known
  double seconds = 0;           ///< expected, of a step
};

/// By rank, then table; of tables of which the rank has something.
std::vector<RankPlan> rank_plans(const PlanProblem&, const std::vector<Placement>&);

}  // namespace hctr
