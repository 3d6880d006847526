#include "support/rig.h"

#include "core/base/random.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {

Rig::Rig(Setup setup)
    : ctx(runtime_of(setup.device, setup.threads, setup.tf32),
          runtime_of(setup.device, setup.threads, setup.tf32).compute_stream()),
      setup_(std::move(setup)),
      device_state_(setup_.device, sizeof(StepState)) {
  copy_bytes(ctx.stream(), device_state_.data(), &setup_.state, sizeof(StepState));
  ctx.stream().synchronize();
  ctx = Context(ctx.runtime(), ctx.stream(), reinterpret_cast<const StepState*>(device_state_.data()));
}

DType Rig::dtype_for(Type type) const {
  switch (type) {
    case Type::same:
      return setup_.dtype;
    case Type::wide:
      return setup_.dtype == DType::f64 ? DType::f64 : DType::f32;
    case Type::i32:
      return DType::i32;
    case Type::i64:
      return DType::i64;
    case Type::u32:
      return DType::u32;
  }
  return setup_.dtype;
}

std::vector<double> Rig::random(const std::string& name, int64_t count, double low, double high, Type type) const {
  const DType round = type == Type::same              ? setup_.rounded_to
                      : dtype_for(type) == DType::f64 ? DType::f32
                                                      : dtype_for(type);
  std::vector<uint32_t> bits(static_cast<size_t>(count));
  random_bits(random_stream(name), 0, 0, count, bits.data());
  std::vector<double> values(bits.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = rounded_to(round, low + (high - low) * static_cast<double>(unit_float(bits[i])));
  return values;
}

const Rig::Entry& Rig::at(const std::string& name) const {
  const auto found = entries_.find(name);
  HCTR_EXPECT(found != entries_.end(), "the test has no tensor \"", name, "\"");
  return found->second;
}

Rig::Entry& Rig::add(const std::string& name, Role role, DType dtype, Shape shape) {
  RowLayout layout = setup_.layouts[entries_.size() % setup_.layouts.size()];
  if (shape.rank() < 2) layout = {"vector", 1, 0, layout.offset};  // one-dimensional tensors are dense
  Entry& entry = entries_.emplace(name, Entry{GuardedTensor(setup_.device, dtype, shape, layout), role}).first->second;
  entry.memory.poison(ctx.stream());
  return entry;
}

Rig::Entry& Rig::input(const std::string& name) {
  if (const auto found = entries_.find(name); found != entries_.end()) return found->second;
  for (const Input& in : setup_.inputs)
    if (in.name == name) {
      Entry& entry = add(name, Role::input, dtype_for(in.type), in.shape);
      entry.memory.set(random(name, in.shape.elements(), in.low, in.high, in.type), ctx.stream());
      return entry;
    }
  throw Error(Kind::bug, cat("the test has no input \"", name, "\""));
}

Tensor Rig::operator[](const std::string& name) { return input(name).memory.tensor(); }

Tensor Rig::inout(const std::string& name) {
  Entry& entry = input(name);
  entry.role = Role::inout;
  return entry.memory.tensor();
}

Tensor Rig::out(const std::string& name, Shape shape, Type type) {
  if (const auto found = entries_.find(name); found != entries_.end()) return found->second.memory.tensor();
  return add(name, Role::output, dtype_for(type), shape).memory.tensor();
}

Tensor Rig::scratch(const std::string& name, const TensorSpec& spec) {
  if (const auto found = entries_.find(name); found != entries_.end()) return found->second.memory.tensor();
  return add(name, Role::scratch, spec.dtype, spec.shape).memory.tensor();
}

Tensor Rig::d(const std::string& name) {
  if (const auto found = entries_.find("d_" + name); found != entries_.end()) return found->second.memory.tensor();
  const Entry& of = at(name);
  const Tensor like = of.memory.tensor();
  if (of.role != Role::output) return add("d_" + name, Role::output, like.dtype(), like.shape()).memory.tensor();
  Entry& entry = add("d_" + name, Role::input, like.dtype(), like.shape());
  entry.memory.set(random("d_" + name, like.elements(), -1, 1, Type::same), ctx.stream());
  return entry.memory.tensor();
}

void Rig::perturb(const std::string& name, size_t element, double delta) {
  Entry& entry = input(name);
  entry.memory.fetch(ctx.stream());
  std::vector<double> changed = entry.memory.values();
  changed.at(element) += delta;
  entry.memory.set(changed, ctx.stream());
}

void Rig::restore() {
  for (auto& [name, entry] : entries_) entry.memory.restore(ctx.stream());
}

std::vector<std::string> Rig::fetch() {
  std::vector<std::string> complaints;
  for (auto& [name, entry] : entries_) {
    entry.memory.fetch(ctx.stream());
    const std::string complaint = entry.memory.complaint(entry.role == Role::output, entry.role == Role::input);
    if (!complaint.empty()) complaints.push_back(name + ": " + complaint);
  }
  return complaints;
}

std::vector<std::string> Rig::written() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_)
    if (entry.role == Role::output || entry.role == Role::inout) names.push_back(name);
  return names;
}

std::map<std::string, std::vector<double>> Rig::output_gradients() const {
  std::map<std::string, std::vector<double>> gradients;
  for (const auto& [name, value] : fixed_gradients_)
    gradients[name] = std::vector<double>(static_cast<size_t>(at(name).memory.tensor().elements()), value);
  for (const auto& [name, entry] : entries_)
    if (const auto d = entries_.find("d_" + name); entry.role == Role::output && d != entries_.end())
      gradients[name] = values("d_" + name);
  return gradients;
}

std::vector<std::string> Rig::inputs_with_gradients() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_)
    if (const auto d = entries_.find("d_" + name);
        entry.role == Role::input && d != entries_.end() && d->second.role == Role::output)
      names.push_back(name);
  return names;
}

}  // namespace hctr::test
