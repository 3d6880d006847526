#include "engine/set/set_rules.h"

#include <cmath>

#include "core/base/expect.h"

namespace hctr {
namespace {

using Rule = EmbeddingOptimizer::Rule;
using Formula = EmbeddingOptimizer::Formula;
using RuleKind = ops::Optimizer::Kind;

constexpr const char* kRules[] = {"none", "sgd",  "momentum_sgd", "nesterov", "adagrad", "rmsprop",
                                  "ftrl", "adam", "adamw",        "adamax",   "adadelta"};

std::string name_of(Rule rule) { return kRules[static_cast<size_t>(rule)]; }

[[noreturn]] void refuse(const EmbeddingTableOptions& table, const std::string& what) {
  throw Error(Kind::usage, cat("embedding table '", table.name, "': ", what));
}

RuleKind kind_of(const EmbeddingOptimizer& optimizer) {
  const bool torch = optimizer.formula == Formula::torch, keras = optimizer.formula == Formula::keras;
  switch (optimizer.rule) {
    case Rule::none:
    case Rule::sgd:
      return RuleKind::sgd;
    case Rule::momentum_sgd:
      return torch ? RuleKind::torch_momentum : RuleKind::momentum_sgd;
    case Rule::nesterov:
      return torch ? RuleKind::torch_nesterov : RuleKind::nesterov;
    case Rule::adagrad:
      return keras ? RuleKind::keras_adagrad : RuleKind::adagrad;
    case Rule::rmsprop:
      return keras ? RuleKind::keras_rmsprop : RuleKind::rmsprop;
    case Rule::ftrl:
      return RuleKind::ftrl;
    case Rule::adam:
      return torch ? RuleKind::torch_adam : RuleKind::adam;
    case Rule::adamw:
      return torch ? RuleKind::torch_adamw : RuleKind::adamw;
    case Rule::adamax:
      return torch ? RuleKind::torch_adamax : RuleKind::adamax;
    case Rule::adadelta:
      return RuleKind::adadelta;
  }
  return RuleKind::sgd;
}

EmbeddingOptimizer none_of(const char* whose, Rule rule) {
  throw Error(Kind::usage, cat(whose, " has no optimizer '", name_of(rule), "'"));
}

/// Checks sizes and policy. Errors: Error(usage) with the name of the table.
void check_table(const EmbeddingTableOptions& table) {
  using When = EmbeddingTableOptions::WhenFull;
  if (table.name.empty()) throw Error(Kind::usage, "an embedding table has no name");
  const auto refuse_below = [&](const char* name, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) refuse(table, cat(name, " is ", value, "; expected ", least, " to ", most));
  };
  refuse_below("dim", table.dim, 1, 1 << 16);
  refuse_below("rows", table.rows, 0, kMostRows);
  refuse_below("most_rows", table.most_rows, 0, kMostRows);
  refuse_below("min_count", table.min_count, 1, int64_t{1} << 31);
  refuse_below("expire_after", table.expire_after, 0, int64_t{1} << 31);
  if (!(table.admit_probability > 0 && table.admit_probability <= 1))
    refuse(table, cat("admit_probability is ", table.admit_probability, "; expected above 0 and at most 1"));
  const bool policy = table.most_rows > 0 || table.min_count > 1 || table.admit_probability < 1 ||
                      table.expire_after > 0 || table.when_full != When::error;
  if (table.rows > 0 && policy)
    refuse(table,
           "with `rows` set, every row exists from the start: remove most_rows, when_full, min_count, "
           "admit_probability and expire_after, or remove `rows`");
  if (table.when_full != When::error && table.most_rows == 0)
    refuse(table, "when_full needs most_rows, the limit at which it acts");
  if (table.rows > 0 && table.marks_changes)
    refuse(table,
           "marks_changes is not supported for a table with `rows` "
           "set");
}

void set_initial_values(const EmbeddingTableOptions& table, TableSpec& spec) {
  const EmbeddingStart& initial = table.initial;
  if (!std::isfinite(initial.value)) refuse(table, "the initial value is not a finite number");
  spec.init_bound = initial.value;
  if (initial.kind == EmbeddingStart::Kind::by_rows) {
    if (table.rows == 0)
      refuse(table,
             "initial values of kind by_rows need the number of rows: set `rows`, or use initial values with a bound");
    spec.init_bound = 1.0f / std::sqrt(static_cast<float>(table.rows));
  }
  spec.init_kind = initial.kind == EmbeddingStart::Kind::normal     ? ops::InitialKind::normal
                   : initial.kind == EmbeddingStart::Kind::constant ? ops::InitialKind::constant
                                                                    : ops::InitialKind::uniform;
}

}  // namespace

EmbeddingOptimizer EmbeddingOptimizer::torch(Rule rule) {
  EmbeddingOptimizer o{.rule = rule, .formula = Formula::torch, .epsilon = 1e-8f};
  switch (rule) {
    case Rule::adagrad:
      o.epsilon = 1e-10f;
      break;
    case Rule::rmsprop:
      o.smoothing = 0.99f;
      break;
    case Rule::adadelta:
      o.epsilon = 1e-6f;
      break;
    case Rule::ftrl:
      return none_of("torch.optim", rule);
    default:
      break;
  }
  return o;
}

EmbeddingOptimizer EmbeddingOptimizer::fbgemm(Rule rule, bool row_wise) {
  if (rule != Rule::sgd && rule != Rule::adagrad && rule != Rule::adam) return none_of("this FBGEMM variant", rule);
  return {.rule = rule, .formula = Formula::torch, .epsilon = 1e-8f, .row_wise = row_wise};
}

EmbeddingOptimizer EmbeddingOptimizer::keras(Rule rule) {
  EmbeddingOptimizer o{.rule = rule, .formula = Formula::keras};
  switch (rule) {
    case Rule::adagrad:
      o.initial = 0.1f;
      break;
    case Rule::ftrl:
      o.initial = 0.1f;
      o.beta = 0;
      break;
    case Rule::adamw:
      o.weight_decay = 0.004f;
      break;
    case Rule::adadelta:
      o.smoothing = 0.95f;
      break;
    default:
      break;
  }
  return o;
}

ops::Optimizer rule_of(const EmbeddingTableOptions& table) {
  const EmbeddingOptimizer& o = table.optimizer;
  const auto share = [&](const char* name, float value) {
    if (!(value >= 0 && value < 1)) refuse(table, cat(name, " is ", value, "; expected at least 0 and below 1"));
  };
  const auto not_negative = [&](const char* name, float value) {
    if (!(value >= 0 && std::isfinite(value))) refuse(table, cat(name, " is ", value, "; expected at least 0"));
  };
  share("beta1", o.beta1);
  share("beta2", o.beta2);
  share("momentum", o.momentum);
  share("smoothing", o.smoothing);
  not_negative("epsilon", o.epsilon);
  not_negative("initial", o.initial);
  not_negative("beta", o.beta);
  not_negative("lambda1", o.lambda1);
  not_negative("lambda2", o.lambda2);
  not_negative("weight_decay", o.weight_decay);
  not_negative("most_gradient", o.most_gradient);
  if (o.row_wise && o.rule != Rule::adagrad)
    refuse(table, cat("row_wise with ", name_of(o.rule), ": only adagrad supports row_wise"));
  if (o.row_wise && o.formula == Formula::keras) refuse(table, "row_wise is not supported with formula keras");
  ops::Optimizer rule{.kind = kind_of(o),
                      .beta1 = o.beta1,
                      .beta2 = o.beta2,
                      .epsilon = o.epsilon,
                      .momentum = o.momentum,
                      .smoothing = o.smoothing,
                      .initial = o.initial,
                      .row_wise = o.row_wise,
                      .beta = o.beta,
                      .lambda1 = o.lambda1,
                      .lambda2 = o.lambda2,
                      .weight_decay = o.weight_decay};
  if (o.most_gradient > 0) rule.most_gradient = o.most_gradient;
  if (o.rows == EmbeddingOptimizer::Rows::lazy_global && rule.kind != RuleKind::adam)
    refuse(table, cat("lazy_global with ", name_of(o.rule), o.formula == Formula::torch ? " of torch" : "",
                      ": only adam with the config's formula supports lazy_global"));
  return rule;
}

TableSpec spec_of(const EmbeddingTableOptions& table, int64_t features) {
  check_table(table);
  TableSpec spec;
  spec.name = table.name;
  spec.dim = table.dim;
  spec.slots = features;
  if (table.rows > 0) spec.direct = direct_keys({table.rows}, false, Placement{}, 0).named_rows();
  spec.optimizer = rule_of(table);
  spec.update = table.optimizer.rows == EmbeddingOptimizer::Rows::global        ? UpdateType::global
                : table.optimizer.rows == EmbeddingOptimizer::Rows::lazy_global ? UpdateType::lazy_global
                                                                                : UpdateType::local;
  spec.storage = table.format == EmbeddingTableOptions::Format::f16    ? DType::f16
                 : table.format == EmbeddingTableOptions::Format::bf16 ? DType::bf16
                                                                       : DType::f32;
  set_initial_values(table, spec);
  spec.row_limit = table.most_rows;
  spec.limit_setting = "most_rows";
  using When = EmbeddingTableOptions::WhenFull;
  spec.policy.when_full = table.when_full == When::evict_lru   ? WhenFull::evict_lru
                          : table.when_full == When::evict_lfu ? WhenFull::evict_lfu
                          : table.when_full == When::ignore    ? WhenFull::ignore
                                                               : WhenFull::error;
  spec.policy.min_count = table.min_count;
  spec.policy.admit_probability = table.admit_probability;
  spec.policy.expire_after = table.expire_after;
  spec.marks_changes = table.marks_changes;
  return spec;
}

ops::BagPooling pooling_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::sum:
      return ops::BagPooling::sum;
    case Pooling::mean:
      return ops::BagPooling::mean;
    case Pooling::sqrtn:
      return ops::BagPooling::sqrtn;
    case Pooling::max:
      return ops::BagPooling::max;
    case Pooling::none:
      break;
  }
  return ops::BagPooling::none;
}

Device device_of(const EmbeddingOptions& options) {
  if (options.gpu < 0) return {};
  const Device device{DeviceKind::cuda, options.gpu};
  expect_built(device);
  if (const GpuSearch found = find_gpus(); options.gpu >= found.count)
    throw Error(Kind::device, cat("GPU ", options.gpu, " of an embedding set does not exist: the number of GPUs is ",
                                  found.count, found.why_none.empty() ? "" : cat(" (", found.why_none, ")")));
  return device;
}

std::shared_ptr<DeviceAllocator> allocator_of(const EmbeddingOptions& options) {
  const EmbeddingAllocator& given = options.allocator;
  if (!given.allocate != !given.free)
    throw Error(Kind::usage, "the allocator of an embedding set needs both allocate and free, or neither");
  if (!given.allocate) return nullptr;
  auto allocator = std::make_shared<DeviceAllocator>();
  allocator->device = device_of(options);
  allocator->stream = options.stream;
  allocator->allocate = [given](size_t bytes, void* stream) {
    return static_cast<std::byte*>(given.allocate(bytes, stream, given.user));
  };
  allocator->free = [given](std::byte* memory, size_t bytes, void* stream) {
    given.free(memory, bytes, stream, given.user);
  };
  return allocator;
}

bool rows_from_allocator(const EmbeddingOptions& options, const EmbeddingTableOptions& table) {
  return table.rows > 0 && options.host_bytes == 0 && options.disk.empty();
}

RuntimeOptions runtime_options(const EmbeddingOptions& options) {
  RuntimeOptions of;
  of.threads = options.threads;
  of.seed = options.seed;
  of.row_memory.device = options.device_bytes;
  of.row_memory.host = options.host_bytes;
  of.row_memory.device_setting = "device_bytes";
  of.row_memory.of_options = true;
  // A disk tier needs host memory for its map, so it needs the name of the host budget too.
  if (options.host_bytes > 0 || !options.disk.empty()) of.row_memory.host_setting = "host_bytes";
  if (!options.disk.empty()) of.row_memory.disk_folder = options.disk.string();
  of.row_memory.disk = options.disk_bytes;
  return of;
}

}  // namespace hctr
