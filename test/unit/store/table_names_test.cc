#include "store/table_names.h"

#include <gtest/gtest.h>

#include "hctr/error.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

TEST(TableNames, AreThoseOfTheOriginalOrErrors) {
  EXPECT_EQ(hugectr_table_name("wdl/table1/12"), "hps_et.wdl.table1");
  EXPECT_NE(message_of(Kind::config, [] { hugectr_table_name("w.l/t/0"); }).find("are not HugeCTR names"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
