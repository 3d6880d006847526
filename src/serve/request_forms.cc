// Reads requests with one tensor per column, and requests in the form of NVIDIA's backend.
#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "core/base/expect.h"
#include "serve/column_table.h"
#include "serve/request_samples.h"

namespace hctr::serve {
namespace {

int64_t rows_of_column(const NamedTensor& values, const NamedTensor* counts) {
  if (counts) return elements_of(*counts);
  if (values.shape.empty() || values.shape.size() > 2)
    throw Refusal::invalid("input '", values.name, "' has shape ", text_of_shape(values.shape),
                           "; expected [-1], one value per sample, or [-1,-1], one list per sample");
  return values.shape[0];
}

/// The offsets of the rows' lists in `values`, [rows + 1]. Empty if each row has one value.
std::vector<int32_t> list_ends(const NamedTensor& values, const NamedTensor* counts, int64_t rows) {
  std::vector<int32_t> ends;
  if (elements_of(values) > std::numeric_limits<int32_t>::max())
    throw Refusal::invalid("input '", values.name, "' has more than ", std::numeric_limits<int32_t>::max(), " values");
  if (!counts && (values.shape.size() == 1 || values.shape[1] == 1)) return ends;
  ends.push_back(0);
  if (!counts) {
    for (int64_t row = 1; row <= rows; ++row) ends.push_back(static_cast<int32_t>(row * values.shape[1]));
    return ends;
  }
  const int64_t all = elements_of(values);
  int64_t sum = 0;
  for (const int64_t count : integers_of(*counts, false)) {
    if (count < 0 || count > all - sum)
      throw Refusal::invalid("input '", counts->name, "' counts ", count, " values for row ", ends.size() - 1,
                             ", but only ", all - sum, " values are left");
    sum += count;
    ends.push_back(static_cast<int32_t>(sum));
  }
  if (sum != all)
    throw Refusal::invalid("input '", values.name, "' has ", all, " values, but '", counts->name, "' counts ", sum);
  return ends;
}

/// Replaces the table's source name in an error message of the reader by "the request".
std::string with_request_for(std::string message, const std::string& source) {
  for (const std::string& name : {cat("'", source, "'"), source})
    for (size_t at; (at = message.find(name)) != message.npos;) message.replace(at, name.size(), "the request");
  return message;
}

}  // namespace

SampleArrays RequestSamples::read_columns(const InferRequest& request) const {
  std::vector<TableColumn> columns;
  int64_t rows = -1;
  std::string said_by;
  for (const RequestColumn& column : columns_) {
    const NamedTensor* values = find_input(request, column.name);
    const NamedTensor* counts = find_counts(request, column.name);
    if (counts && !values)
      throw Refusal::invalid("input '", counts->name, "' has no values: input '", column.name, "' is missing");
    if (column.use == RequestColumn::Use::ignored) continue;
    if (!values) {
      if (column.optional) continue;
      if (!column.has_default)
        throw Refusal::invalid("input '", column.name, "' is missing: the config of model '", request.model,
                               "' has no \"default\" for this column");
      columns.push_back({column.name});
      continue;
    }
    const int64_t own = rows_of_column(*values, counts);
    if (rows >= 0 && own != rows)
      throw Refusal::invalid("input '", column.name, "' has ", own, " samples, but input '", said_by, "' has ", rows);
    expect_few_samples(*values, own);
    rows = own;
    said_by = column.name;
    columns.push_back({column.name, values, list_ends(*values, counts, own)});
  }
  if (rows < 0) throw Refusal::invalid("no input of the request is a column that model '", request.model, "' reads");
  if (rows == 0) return empty();
  const ColumnTable table(rows, columns);
  Source source = source_;
  source.path = table.source();
  try {
    SampleArrays samples = read_sample_arrays(config_, source, rows);
    if (samples.samples != rows)
      throw Refusal(Code::internal, cat(samples.samples, " of ", rows, " samples of the request were read"));
    return samples;
  } catch (const Error& error) {
    throw Error(error.kind(), with_request_for(error.what(), table.source()));
  }
}

SampleArrays RequestSamples::read_backend_form(const InferRequest& request) const {
  const NamedTensor* keys = find_input(request, "CATCOLUMN");
  const NamedTensor* rows = find_input(request, "ROWINDEX");
  const NamedTensor* dense = find_input(request, "DES");
  if (!keys || !rows) throw Refusal::invalid("the request needs both inputs 'CATCOLUMN' and 'ROWINDEX'");
  SampleArrays samples = empty();
  if (samples.dense_dim > 0 && !dense) throw Refusal::invalid("input 'DES' is missing");
  const std::vector<int64_t> all = integers_of(*keys, true), offsets = integers_of(*rows, false);
  const auto tables = static_cast<int64_t>(samples.inputs.size());
  int64_t slots = 0;
  for (const SampleArrays::Keys& input : samples.inputs) slots += input.slots;
  const int64_t bags = static_cast<int64_t>(offsets.size()) - tables;
  if (slots == 0 || bags < 0 || bags % slots != 0)
    throw Refusal::invalid("input 'ROWINDEX' has ", offsets.size(), " elements; expected samples * ", slots, " + ",
                           tables);
  samples.samples = bags / slots;
  if (samples.dense_dim > 0) read_dense(*dense, samples);
  if (static_cast<int64_t>(samples.dense.size()) != samples.samples * samples.dense_dim)
    throw Refusal::invalid("input 'DES' has ", samples.dense.size(), " values; ", samples.samples, " samples of ",
                           samples.dense_dim, " take ", samples.samples * samples.dense_dim);
  size_t at = 0, base = 0;
  for (SampleArrays::Keys& input : samples.inputs) {
    const auto of_table = static_cast<size_t>(samples.samples * input.slots);
    for (size_t bag = 0; bag <= of_table; ++bag, ++at) {
      const int64_t before = bag == 0 ? 0 : offsets[at - 1];
      if ((bag == 0 && offsets[at] != 0) || offsets[at] < before ||
          offsets[at] > static_cast<int64_t>(all.size() - base))
        throw Refusal::invalid("input 'ROWINDEX': element ", at, " is ", offsets[at], "; expected ", before, " to ",
                               bag == 0 ? 0 : all.size() - base);
      if (bag > 0) {
        input.offsets.push_back(offsets[at]);
        input.one_each = input.one_each && offsets[at] == before + 1;
      }
    }
    const auto count = static_cast<size_t>(input.offsets.back());
    input.keys.assign(all.begin() + static_cast<std::ptrdiff_t>(base),
                      all.begin() + static_cast<std::ptrdiff_t>(base + count));
    base += count;
  }
  if (base != all.size())
    throw Refusal::invalid("input 'CATCOLUMN' has ", all.size(), " keys, but 'ROWINDEX' counts ", base);
  return samples;
}

void expect_few_samples(const NamedTensor& tensor, int64_t samples) {
  constexpr int64_t kMost = int64_t{1} << 20, kMostWithoutData = int64_t{1} << 16;
  const int64_t most = tensor.data.empty() ? kMostWithoutData : kMost;
  if (samples > most)
    throw Refusal::invalid("input '", tensor.name, "' has shape ", text_of_shape(tensor.shape), ": expected at most ",
                           most, tensor.data.empty() ? " samples with empty lists" : " samples");
}

void append_samples(SampleArrays& to, const SampleArrays& from) {
  const auto values_of = [](const SampleArrays& of) {
    return of.given_dense ? std::span(of.given_dense.get(), static_cast<size_t>(of.samples * of.dense_dim))
                          : std::span<const float>(of.dense);
  };
  const auto add = [](auto& list, const auto& values) { list.insert(list.end(), values.begin(), values.end()); };
  if (to.given_dense) {
    add(to.dense, values_of(to));
    to.given_dense = nullptr;
  }
  add(to.dense, values_of(from));
  for (size_t t = 0; t < to.inputs.size(); ++t) {
    SampleArrays::Keys& keys = to.inputs[t];
    const auto add_ones = [&keys](const std::shared_ptr<const int64_t>& given, int64_t samples) {
      const auto count = static_cast<size_t>(samples * keys.slots), before = keys.offsets.size();
      const auto base = static_cast<int64_t>(keys.keys.size());
      keys.keys.insert(keys.keys.end(), given.get(), given.get() + count);
      keys.offsets.resize(before + count);
      for (size_t i = 0; i < count; ++i) keys.offsets[before + i] = base + static_cast<int64_t>(i) + 1;
    };
    if (const auto given = std::exchange(keys.given, nullptr)) add_ones(given, to.samples);
    const SampleArrays::Keys& more = from.inputs[t];
    if (more.given) {
      add_ones(more.given, from.samples);
      continue;
    }
    const auto base = static_cast<int64_t>(keys.keys.size());
    add(keys.keys, more.keys);
    keys.offsets.reserve(keys.offsets.size() + more.offsets.size());
    for (size_t i = 1; i < more.offsets.size(); ++i) keys.offsets.push_back(base + more.offsets[i]);
    keys.one_each = keys.one_each && more.one_each;
  }
  to.samples += from.samples;
}

}  // namespace hctr::serve
