// The handle of a rank.
#pragma once

#include "hctr/huge_ctr.h"
#include "hctr/ranks.h"

struct hctr_rank {
  hctr::EmbeddingRank rank;
};
