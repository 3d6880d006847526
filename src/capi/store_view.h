// The C handle of a StoreView.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hctr/huge_ctr.h"
#include "hctr/store.h"

struct hctr_store_view {
  explicit hctr_store_view(hctr::StoreView of)
      : view(std::make_shared<const hctr::StoreView>(std::move(of))),
        version(view->version()),
        tables(view->tables()) {}
  std::shared_ptr<const hctr::StoreView> view;
  std::string version;
  std::vector<hctr::StoreView::Table> tables;
};
