#include "config/sections/early_stopping_section.h"

namespace hctr {

Schema<EarlyStopping> early_stopping_schema() {
  using E = EarlyStopping;
  return Schema<E>("early_stopping")
      .opt("metric", &E::metric, "a metric of eval_metrics")
      .opt("patience", &E::patience,
           "number of consecutive evaluations without a new best value after which "
           "training ends",
           at_least(1))
      .together([](E& e, const std::string&, Problems&) { e.given = true; });
}

}  // namespace hctr
