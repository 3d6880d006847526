#include "score/scored_rows.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "core/base/expect.h"

namespace hctr {
namespace {

void append_rows(View<const float, 2> from, int64_t rows, std::vector<float>& to) {
  for (int64_t r = 0; r < rows; ++r) to.insert(to.end(), from.row(r), from.row(r) + from.row_elements());
}

ScoredRows rows_of(ScoredBatch& batch) {
  ScoredRows rows{.rows = batch.rows,
                  .predictions = std::vector<std::vector<float>>(batch.predictions.size()),
                  .labels = std::vector<std::vector<float>>(batch.labels.size()),
                  .passed_on = std::move(batch.passed_on)};
  for (size_t t = 0; t < batch.predictions.size(); ++t) {
    append_rows(batch.predictions[t], batch.rows, rows.predictions[t]);
    append_rows(batch.labels[t], batch.rows, rows.labels[t]);
  }
  return rows;
}

/// Serializes lists of numbers and text to a byte string, and reads them back.
class Packed {
 public:
  Packed() = default;
  explicit Packed(std::string bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  void add(const T* values, size_t count) {
    const uint64_t size = count * sizeof(T);
    bytes_.append(reinterpret_cast<const char*>(&size), sizeof size);
    if (size > 0) bytes_.append(reinterpret_cast<const char*>(values), size);
  }
  /// Reads the next list and appends it to `values`.
  template <class Values>
  void take(Values& values) {
    uint64_t size = 0;
    std::memcpy(&size, bytes_.data() + at_, sizeof size);
    at_ += sizeof size;
    const size_t before = values.size();
    values.resize(before + size / sizeof(values[0]));
    if (size > 0) std::memcpy(values.data() + before, bytes_.data() + at_, size);
    at_ += size;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

std::string packed(const ScoredRows& rows) {
  Packed bytes;
  bytes.add(&rows.rows, 1);
  for (const auto* lists : {&rows.predictions, &rows.labels})
    for (const std::vector<float>& list : *lists) bytes.add(list.data(), list.size());
  bytes.add(rows.passed_on.kept.text.data(), rows.passed_on.kept.text.size());
  bytes.add(rows.passed_on.kept.ends.data(), rows.passed_on.kept.ends.size());
  return bytes.bytes();
}

void append(Packed bytes, ScoredRows& to) {
  std::vector<int64_t> rows;
  bytes.take(rows);
  to.rows += rows[0];
  for (auto* lists : {&to.predictions, &to.labels})
    for (std::vector<float>& list : *lists) bytes.take(list);
  KeptCells kept;
  bytes.take(kept.text);
  bytes.take(kept.ends);
  to.passed_on.kept.append(kept, 0, kept.ends.size());
}

}  // namespace

ScoredRows rows_on_rank_0(Communicator& comm, ScoredBatch& batch) {
  ScoredRows rows = rows_of(batch);
  if (comm.size() == 1) return rows;
  const std::vector<std::string> others = comm.gather(comm.rank() == 0 ? "" : packed(rows), 0);
  if (comm.rank() != 0) return {};
  for (size_t r = 1; r < others.size(); ++r) append(Packed(others[r]), rows);
  return rows;
}

void append_score(float value, std::string& text) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 9);
  text.append(digits, end);
}

void append_label(float value, std::string& text) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end);
}

}  // namespace hctr
