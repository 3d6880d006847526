#include "config/compatibility.h"

namespace hctr {

const std::vector<CompatibilityWord>& compatibility_words() {
  using C = Compatibility;
  static const std::vector<CompatibilityWord> words = {
      {"schedule_sets_embedding_rates", &C::schedule_sets_embedding_rates,
       "an embedding with its own optimizer uses the learning rate of the top-level schedule, as in 2.2 to 3.1; "
       "without this word it uses its own rate, scaled by the top-level schedule"},
      {"penalty_per_gpu", &C::penalty_per_gpu,
       "the regularizer divides by the batch of one GPU, and every GPU adds its gradient. With G GPUs in `gpu` the "
       "penalty is G times as large in the loss and G^2 times as large in the gradient, where it is also divided by "
       "the loss scale of `mixed_precision`. Without this word the penalty does not depend on the number of GPUs"},
      {"dot_product_gradient", &C::dot_product_gradient,
       "DotProduct passes no gradient to a factor that is 0, as 2.x and 3.0 do; without this word the gradient is the "
       "product of the other factors"},
      {"evaluation_continues", &C::evaluation_continues,
       "an evaluation limited by `max_eval_batches` continues where the previous one ended, and wraps around at the "
       "end of the set; without this word each evaluation starts at the first sample"},
      {"drop_partial_batches", &C::drop_partial_batches,
       "with `num_epochs`, samples at the end of the set that do not fill a batch are dropped, as in 3.0; "
       "without `drop_partial_batches` these samples form a smaller batch"},
      {"batch_norm_per_gpu", &C::batch_norm_per_gpu,
       "BatchNorm and PReLU_Dice compute mean and variance of each GPU's share of the batch, and the model file gets "
       "the first GPU's running averages of BatchNorm; without this word the statistics are of the whole batch, for "
       "any number of GPUs"},
  };
  return words;
}

Misfit read_value(const Json& value, const Range&, Compatibility& out) {
  std::vector<std::string> given, known;
  if (Misfit misfit = read_value(value, Range{}, given); !misfit.empty()) return misfit;
  for (const CompatibilityWord& each : compatibility_words()) known.push_back(each.word);
  out = {};
  for (size_t i = 0; i < given.size(); ++i) {
    size_t index = 0;
    if (Misfit misfit = read_word(given[i], known, index); !misfit.empty()) {
      misfit.pointer = value.array() ? "/" + std::to_string(i) : "";
      misfit.found = Json(given[i]).kind();
      return misfit;
    }
    out.*compatibility_words()[index].flag = true;
  }
  return {};
}

Json to_json(const Compatibility& compatibility) {
  Json words(Json::Array{});
  for (const CompatibilityWord& each : compatibility_words())
    if (compatibility.*each.flag) words.add(each.word);
  return words;
}

}  // namespace hctr
