#include "ops/gemm/product_search.h"

namespace hctr::ops {

void describe_product_library(Context& ctx, std::string& library) {
  library.clear();
  HCTR_ON_DEVICE(ctx, describe_product_library(ctx, library));
}

void use_algorithms(Context& ctx, const ProductAlgorithms& algorithms, ProductAlgorithms& refused) {
  refused.clear();
  HCTR_ON_DEVICE(ctx, use_algorithms(ctx, algorithms, refused));
}

void search_algorithms(Context& ctx, ProductAlgorithms& found) { HCTR_ON_DEVICE(ctx, search_algorithms(ctx, found)); }

void cpu::describe_product_library(Context&, std::string&) {}
void cpu::use_algorithms(Context&, const ProductAlgorithms&, ProductAlgorithms&) {}
void cpu::search_algorithms(Context&, ProductAlgorithms&) {}

}  // namespace hctr::ops
