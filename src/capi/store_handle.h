// The handle of a store.
#pragma once

#include "capi/call.h"
#include "hctr/store.h"
#include "hctr/surroundings.h"

struct hctr_store {
  hctr::Store store;
  hctr::Surroundings surroundings;
};

namespace hctr::capi {

/// Errors: Error(usage) for null.
inline Store& store_at(hctr_store* store) {
  expect_given(store, "the hctr_store");
  return store->store;
}

}  // namespace hctr::capi
