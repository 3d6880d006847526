#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "core/base/expect.h"
#include "support/onnx_reader.h"

namespace hctr::test {
namespace onnx_operators {
namespace {

using Dims = std::vector<int64_t>;
using OnnxNode = OnnxFile::Node;

int64_t product(const Dims& dims, size_t from = 0) {
  int64_t count = 1;
  for (size_t d = from; d < dims.size(); ++d) count *= dims[d];
  return count;
}

/// If x is broadcast to the dims `to`: returns the index of the element of x that is copied to index `place`.
int64_t broadcast_index(const Dims& x, const Dims& to, int64_t place) {
  int64_t index = 0, step = 1;
  for (size_t d = 0; d < to.size(); ++d) {
    const size_t from_end = to.size() - 1 - d;
    const int64_t at = place % to[from_end];
    place /= to[from_end];
    if (d >= x.size()) continue;
    const int64_t size = x[x.size() - 1 - d];
    if (size != 1) index += at * step;
    step *= size;
  }
  return index;
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims to(std::max(a.size(), b.size()), 1);
  for (size_t d = 0; d < to.size(); ++d) {
    const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1, y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) throw std::runtime_error(cat("sizes ", x, " and ", y, " do not go together"));
    to[to.size() - 1 - d] = x == 1 ? y : x;
  }
  return to;
}

template <class T>
const std::vector<T>& values(const OnnxArray& x) {
  if constexpr (std::is_same_v<T, double>) {
    if (x.is_integer) throw std::runtime_error("integers where numbers are expected");
    return x.reals;
  } else {
    if (!x.is_integer) throw std::runtime_error("numbers where integers are expected");
    return x.integers;
  }
}

template <class T, class F>
auto elementwise(const OnnxArray& a, const OnnxArray& b, const F& f) {
  using R = std::conditional_t<std::is_same_v<decltype(f(T{}, T{})), double>, double, int64_t>;
  const Dims dims = broadcast(a.dims, b.dims);
  std::vector<R> out;
  for (int64_t i = 0; i < product(dims); ++i)
    out.push_back(static_cast<R>(f(values<T>(a)[static_cast<size_t>(broadcast_index(a.dims, dims, i))],
                                   values<T>(b)[static_cast<size_t>(broadcast_index(b.dims, dims, i))])));
  return OnnxArray::of(dims, out);
}

/// Applies a function to the floats or integers of an array.
template <class F>
OnnxArray binary(const OnnxArray& a, const OnnxArray& b, const F& f) {
  if (a.is_integer) return elementwise<int64_t>(a, b, f);
  return elementwise<double>(a, b, f);
}

OnnxArray unary(const OnnxArray& x, const std::function<double(double)>& f) {
  std::vector<double> out;
  for (const double value : values<double>(x)) out.push_back(f(value));
  return OnnxArray::of(x.dims, out);
}

/// Returns an array with dims `dims` whose element i is the element `index(i)` of x.
OnnxArray pick(const OnnxArray& x, const Dims& dims, const std::function<int64_t(int64_t)>& index) {
  OnnxArray out{dims, {}, {}, x.is_integer};
  for (int64_t i = 0; i < product(dims); ++i) {
    const auto from = static_cast<size_t>(index(i));
    if (x.is_integer)
      out.integers.push_back(x.integers.at(from));
    else
      out.reals.push_back(x.reals.at(from));
  }
  return out;
}

size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

OnnxArray gather(const OnnxArray& x, const OnnxArray& at, size_t axis) {
  Dims dims(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), at.dims.begin(), at.dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.dims.end());
  const int64_t inner = product(x.dims, axis + 1), size = x.dims[axis], count = at.elements();
  return pick(x, dims, [&](int64_t i) {
    int64_t chosen = values<int64_t>(at)[static_cast<size_t>(i / inner % count)];
    if (chosen < -size || chosen >= size) throw std::runtime_error(cat("row ", chosen, " of ", size));
    if (chosen < 0) chosen += size;
    return (i / inner / count * size + chosen) * inner + i % inner;
  });
}

OnnxArray matmul(const OnnxArray& a, const OnnxArray& b) {
  const size_t ra = a.dims.size(), rb = b.dims.size();
  const int64_t m = a.dims[ra - 2], k = a.dims[ra - 1], n = b.dims[rb - 1];
  if (b.dims[rb - 2] != k) throw std::runtime_error("MatMul of matrices that do not fit");
  const Dims of_a(a.dims.begin(), a.dims.end() - 2), of_b(b.dims.begin(), b.dims.end() - 2);
  Dims dims = broadcast(of_a, of_b);
  std::vector<double> out;
  for (int64_t i = 0; i < product(dims); ++i) {
    const double* x = a.reals.data() + broadcast_index(of_a, dims, i) * m * k;
    const double* y = b.reals.data() + broadcast_index(of_b, dims, i) * k * n;
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < k; ++j) sum += x[r * k + j] * y[j * n + c];
        out.push_back(sum);
      }
  }
  dims.insert(dims.end(), {m, n});
  return OnnxArray::of(dims, out);
}

OnnxArray transpose(const OnnxArray& x, const Dims& perm) {
  Dims dims, steps;
  for (const int64_t p : perm) {
    dims.push_back(x.dims[static_cast<size_t>(p)]);
    steps.push_back(product(x.dims, static_cast<size_t>(p) + 1));
  }
  return pick(x, dims, [&](int64_t i) {
    int64_t index = 0;
    for (size_t d = dims.size(); d-- > 0; i /= dims[d]) index += i % dims[d] * steps[d];
    return index;
  });
}

OnnxArray reduce(const OnnxArray& x, int64_t at, bool keep, bool mean) {
  const size_t axis = axis_of(at, x.dims.size());
  const int64_t inner = product(x.dims, axis + 1), size = x.dims[axis];
  Dims dims = x.dims;
  dims[axis] = 1;
  std::vector<double> out;
  for (int64_t i = 0; i < product(dims); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < size; ++j)
      sum += values<double>(x)[static_cast<size_t>((i / inner * size + j) * inner + i % inner)];
    out.push_back(mean ? sum / static_cast<double>(size) : sum);
  }
  if (!keep) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return OnnxArray::of(dims, out);
}

OnnxArray reshape(OnnxArray x, Dims to) {
  int64_t known = 1;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 0) to[d] = x.dims[d];
    if (to[d] > 0) known *= to[d];
  }
  for (int64_t& dim : to)
    if (dim == -1) dim = x.elements() / known;
  if (product(to) != x.elements()) throw std::runtime_error("Reshape to another number of elements");
  x.dims = to;
  return x;
}

OnnxArray concat(const std::vector<OnnxArray>& x, int64_t at) {
  const size_t axis = axis_of(at, x[0].dims.size());
  OnnxArray out{x[0].dims, {}, {}, x[0].is_integer};
  out.dims[axis] = 0;
  for (const OnnxArray& each : x) out.dims[axis] += each.dims[axis];
  const int64_t outer = product(x[0].dims) / product(x[0].dims, axis);
  for (int64_t o = 0; o < outer; ++o)
    for (const OnnxArray& each : x) {
      const int64_t inner = product(each.dims, axis);
      const auto append = [&](auto& to, const auto& from) {
        to.insert(to.end(), from.begin() + o * inner, from.begin() + (o + 1) * inner);
      };
      each.is_integer ? append(out.integers, each.integers) : append(out.reals, each.reals);
    }
  return out;
}

OnnxArray slice(const OnnxArray& x, int64_t begin, int64_t end, int64_t at) {
  const size_t axis = axis_of(at, x.dims.size());
  Dims range;
  for (int64_t i = begin; i < std::min(end, x.dims[axis]); ++i) range.push_back(i);
  return gather(x, OnnxArray::of({static_cast<int64_t>(range.size())}, range), axis);
}

OnnxArray softmax(const OnnxArray& x) {
  OnnxArray out = x;
  const auto n = static_cast<size_t>(x.dims.back());
  for (size_t row = 0; row < out.reals.size(); row += n) {
    double* y = &out.reals[row];
    const double most = *std::max_element(y, y + n);
    double sum = 0;
    for (size_t j = 0; j < n; ++j) sum += y[j] = std::exp(y[j] - most);
    for (size_t j = 0; j < n; ++j) y[j] /= sum;
  }
  return out;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// A forward GRU with linear_before_reset. The gate order is z, r, h.
OnnxArray gru(const OnnxArray& x, const OnnxArray& w, const OnnxArray& r, const OnnxArray& bias, int64_t units) {
  const int64_t steps = x.dims[0], batch = x.dims[1], width = x.dims[2];
  std::vector<double> out, state(static_cast<size_t>(batch * units), 0);
  for (int64_t t = 0; t < steps; ++t) {
    const std::vector<double> before = state;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t j = 0; j < units; ++j) {
        const auto of_input = [&](int64_t gate) {
          double sum = bias.reals[static_cast<size_t>(gate * units + j)];
          for (int64_t i = 0; i < width; ++i)
            sum += x.reals[static_cast<size_t>((t * batch + b) * width + i)] *
                   w.reals[static_cast<size_t>((gate * units + j) * width + i)];
          return sum;
        };
        const auto of_state = [&](int64_t gate) {
          double sum = bias.reals[static_cast<size_t>((3 + gate) * units + j)];
          for (int64_t i = 0; i < units; ++i)
            sum += before[static_cast<size_t>(b * units + i)] *
                   r.reals[static_cast<size_t>((gate * units + j) * units + i)];
          return sum;
        };
        const double z = logistic(of_input(0) + of_state(0)), reset = logistic(of_input(1) + of_state(1));
        const double h = std::tanh(of_input(2) + reset * of_state(2));
        state[static_cast<size_t>(b * units + j)] = (1 - z) * h + z * before[static_cast<size_t>(b * units + j)];
      }
    out.insert(out.end(), state.begin(), state.end());
  }
  return OnnxArray::of({steps, 1, batch, units}, out);
}

OnnxArray compute(const OnnxNode& node, const std::vector<OnnxArray>& in) {
  const std::string& op = node.op;
  const auto list = [&](size_t i) -> const std::vector<int64_t>& { return values<int64_t>(in.at(i)); };
  const auto real = [&](const char* name) { return node.reals.at(name); };
  const OnnxArray& x = in.at(0);
  if (op == "Add") return binary(x, in.at(1), [](auto a, auto b) { return a + b; });
  if (op == "Sub") return binary(x, in.at(1), [](auto a, auto b) { return a - b; });
  if (op == "Mul") return binary(x, in.at(1), [](auto a, auto b) { return a * b; });
  if (op == "Div") return binary(x, in.at(1), [](auto a, auto b) { return a / b; });
  if (op == "Min") return binary(x, in.at(1), [](auto a, auto b) { return std::min(a, b); });
  if (op == "Max") return binary(x, in.at(1), [](auto a, auto b) { return std::max(a, b); });
  if (op == "Less") return binary(x, in.at(1), [](auto a, auto b) { return a < b; });
  if (op == "LessOrEqual") return binary(x, in.at(1), [](auto a, auto b) { return a <= b; });
  if (op == "Greater") return binary(x, in.at(1), [](auto a, auto b) { return a > b; });
  if (op == "Equal") return binary(x, in.at(1), [](auto a, auto b) { return a == b; });
  if (op == "And") return binary(x, in.at(1), [](auto a, auto b) { return a != 0 && b != 0; });
  if (op == "PRelu") return binary(x, in.at(1), [](auto a, auto slope) { return a < 0 ? slope * a : a; });
  if (op == "Sum") {
    OnnxArray sum = x;
    for (size_t i = 1; i < in.size(); ++i) sum = binary(sum, in[i], [](auto a, auto b) { return a + b; });
    return sum;
  }
  if (op == "Not") return binary(x, x, [](auto a, auto) { return a == 0; });
  if (op == "Identity") return x;
  if (op == "Relu") return unary(x, [](double v) { return std::max(v, 0.0); });
  if (op == "Sigmoid") return unary(x, logistic);
  if (op == "Tanh") return unary(x, [](double v) { return std::tanh(v); });
  if (op == "Erf") return unary(x, [](double v) { return std::erf(v); });
  if (op == "Sqrt") return unary(x, [](double v) { return std::sqrt(v); });
  if (op == "Elu") return unary(x, [&](double v) { return v < 0 ? real("alpha") * std::expm1(v) : v; });
  if (op == "LeakyRelu") return unary(x, [&](double v) { return v < 0 ? real("alpha") * v : v; });
  if (op == "Where") {
    const Dims dims = broadcast(x.dims, broadcast(in.at(1).dims, in.at(2).dims));
    const OnnxArray &yes = in[1], &no = in[2];
    const OnnxArray first = pick(yes, dims, [&](int64_t i) { return broadcast_index(yes.dims, dims, i); });
    OnnxArray out = pick(no, dims, [&](int64_t i) { return broadcast_index(no.dims, dims, i); });
    for (int64_t i = 0; i < product(dims); ++i) {
      if (values<int64_t>(x)[static_cast<size_t>(broadcast_index(x.dims, dims, i))] == 0) continue;
      const auto at = static_cast<size_t>(i);
      if (out.is_integer)
        out.integers[at] = values<int64_t>(first)[at];
      else
        out.reals[at] = values<double>(first)[at];
    }
    return out;
  }
  if (op == "Gather") return gather(x, in.at(1), axis_of(node.integer("axis", 0), x.dims.size()));
  if (op == "MatMul") return matmul(x, in.at(1));
  if (op == "Gemm") {
    const OnnxArray y = matmul(x, node.integer("transB", 0) ? transpose(in.at(1), {1, 0}) : in.at(1));
    return in.size() < 3 ? y : binary(y, in[2], [](auto a, auto b) { return a + b; });
  }
  if (op == "Concat") return concat(in, node.integer("axis", 0));
  if (op == "Slice") return slice(x, list(1).at(0), list(2).at(0), list(3).at(0));
  if (op == "Reshape") return reshape(x, list(1));
  if (op == "Transpose") return transpose(x, node.lists.at("perm"));
  if (op == "ReduceSum") return reduce(x, list(1).at(0), node.integer("keepdims", 1) != 0, false);
  if (op == "ReduceMean") return reduce(x, node.lists.at("axes").at(0), node.integer("keepdims", 1) != 0, true);
  if (op == "Softmax") return softmax(x);
  if (op == "Unsqueeze") {
    OnnxArray y = x;
    y.dims.insert(y.dims.begin() + static_cast<std::ptrdiff_t>(axis_of(list(1).at(0), x.dims.size() + 1)), 1);
    return y;
  }
  if (op == "Tile") {
    OnnxArray y = x;
    for (size_t d = 0; d < x.dims.size(); ++d)
      y = concat(std::vector<OnnxArray>(static_cast<size_t>(list(1).at(d)), y), static_cast<int64_t>(d));
    return y;
  }
  if (op == "Pad") {  // only padding at the end of the last dimension
    const int64_t columns = list(1).back();
    if (std::count(list(1).begin(), list(1).end(), 0) + 1 < static_cast<int64_t>(list(1).size()))
      throw std::runtime_error("Pad of several dimensions");
    Dims dims = x.dims;
    dims.back() = columns;
    return concat({x, OnnxArray::of(dims, std::vector<double>(static_cast<size_t>(product(dims))))}, -1);
  }
  if (op == "BatchNormalization") {
    OnnxArray y = x;
    const auto n = static_cast<size_t>(x.dims[1]);
    for (size_t i = 0; i < y.reals.size(); ++i) {
      const size_t j = i % n;
      y.reals[i] =
          in.at(1).reals[j] * (x.reals[i] - in.at(3).reals[j]) / std::sqrt(in.at(4).reals[j] + real("epsilon")) +
          in.at(2).reals[j];
    }
    return y;
  }
  if (op == "GRU" && node.integer("linear_before_reset", 0) == 1)
    return gru(x, in.at(1), in.at(2), in.at(3), node.integer("hidden_size", 0));
  throw std::runtime_error("operator " + op);
}

}  // namespace
}  // namespace onnx_operators

OnnxArrays evaluate(const OnnxFile& file, OnnxArrays inputs) {
  OnnxArrays all = file.initializers;
  all.merge(inputs);
  for (const OnnxFile::Node& node : file.nodes) {
    std::vector<OnnxArray> in;
    for (const std::string& name : node.in) {
      if (!all.contains(name)) throw std::runtime_error(cat("node ", node.out.at(0), " reads '", name, "'"));
      in.push_back(all.at(name));
    }
    try {
      OnnxArray out = onnx_operators::compute(node, in);
      if (!all.emplace(node.out.at(0), std::move(out)).second)
        throw std::runtime_error(cat("'", node.out[0], "' is made twice"));
    } catch (const std::exception& error) {
      throw std::runtime_error(cat(node.op, " '", node.out[0], "': ", error.what()));
    }
  }
  return all;
}

}  // namespace hctr::test
