// Tests which columns the vectors of a slot have.
#include "engine/spec/slot_vector_columns.h"

#include <gtest/gtest.h>

namespace hctr {
namespace {

using Numbers = std::vector<int32_t>;

TEST(SlotVectorColumns, AreOnePerSlotIfKeysArePooled) {
  TableSpec spec;
  spec.slots = 3;
  spec.combiner = ops::Combiner::mean;
  const SlotVectorColumns columns = slot_vector_columns(spec);
  EXPECT_EQ(columns.of_slot, (Numbers{0, 1, 2}));
  EXPECT_EQ(columns.slots, (Numbers{0, 1, 2}));
}

TEST(SlotVectorColumns, AreOnePerKeyOfABagIfKeysAreNotPooled) {
  TableSpec spec;
  spec.slots = 3;
  spec.combiner = ops::Combiner::none;
  spec.slot_keys = {2, 1, 3};
  const SlotVectorColumns columns = slot_vector_columns(spec);
  EXPECT_EQ(columns.of_slot, (Numbers{0, 2, 3}));
  EXPECT_EQ(columns.slots, (Numbers{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(std::ssize(columns.slots), spec.columns());
}

}  // namespace
}  // namespace hctr
