#include "formats/features/feature_parser.h"

#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "formats/data/one_hot.h"
#include "formats/data/read_records.h"
#include "formats/features/feature_values.h"
#include "formats/io/byte_file.h"

namespace hctr {
namespace {

constexpr int64_t kFeatureTileRows = 512;  // rows per tile; a tile is converted column by column in the L1 cache

float most_of_number(const FeatureColumn& feature) {
  return feature.type == FeatureType::boolean ? 1.0f : std::numeric_limits<float>::max();
}

/// For each row r, calls one(r, offset), where `offset` is the byte offset of the row's value. Contiguous values have a
/// separate loop that vectorizes.
template <class T, class One>
void for_values(size_t width, int64_t rows, const One& one) {
  if (width == sizeof(T))
    for (int64_t r = 0; r < rows; ++r) one(r, static_cast<size_t>(r) * sizeof(T));
  else
    for (int64_t r = 0; r < rows; ++r) one(r, static_cast<size_t>(r) * width);
}

/// Converts the ids of one column to keys. Returns whether all ids are below the limit.
template <class T>
bool put_ids(const std::byte* from, size_t width, int64_t rows, const FeatureField& field, int64_t* to) {
  const auto limit = static_cast<uint64_t>(field.limit), more = static_cast<uint64_t>(field.more);
  uint64_t outside = 0;
  for_values<T>(width, rows, [&](int64_t r, size_t at) {
    const auto id =
        // as unsigned, a negative id exceeds every limit
        static_cast<uint64_t>(static_cast<int64_t>(stored<T>(from + at)));
    outside |= id >= limit;
    to[r] = static_cast<int64_t>(id + more);
  });
  return outside == 0;
}

template <class T>
bool put_numbers(const std::byte* from, size_t width, int64_t rows, const FeatureField& field, float* to,
                 int64_t step) {
  const float most = most_of_number(field.feature);
  int outside = 0;
  for_values<T>(width, rows, [&](int64_t r, size_t at) {
    const auto value = static_cast<float>(stored<T>(from + at));
    outside |= !(std::fabs(value) <= most);
    to[r * step] = value;
  });
  if constexpr (std::is_integral_v<T>)
    if (field.feature.cardinality)  // few features have a cardinality, so this second pass is rare
      for_values<T>(width, rows, [&, limit = static_cast<uint64_t>(*field.feature.cardinality)](int64_t, size_t at) {
        outside |= static_cast<uint64_t>(static_cast<int64_t>(stored<T>(from + at))) >= limit;
      });
  return outside == 0;
}

/// Where a field's values are written in a block. `to`: the value of row 0. `step`: elements from one row to the next.
struct Numbers {
  float* to;
  int64_t step;
};
Numbers numbers_of(const FeaturePlan& plan, const FeatureField& field, SampleBlock& block) {
  const bool label = field.to == FeatureField::To::label;
  return {(label ? block.label : block.dense).data() + field.index, label ? plan.label_dim : plan.dense_dim};
}

std::string id_problem(const FeatureField& field, int64_t id) {
  if (std::string misfit = feature_misfit(field.feature, static_cast<double>(id)); !misfit.empty()) return misfit;
  return id < 0
             ? cat("feature ", field.feature.name, ": ", id, " is not an id; expected an integer of at least 0")
             : cat("feature ", field.feature.name, ": ", id, " is not an id: \"slot_size_array\" allows ids from 0 to ",
                   field.limit - 1, " in slot ", field.index);
}

std::string number_problem(const FeatureField& field, double value) {
  const bool finite = std::isfinite(static_cast<float>(value));
  return finite ? feature_misfit(field.feature, value)
                : cat("feature ", field.feature.name, ": ", value, " is not a finite float");
}

}  // namespace

template <class Describe>
void FeatureParser::mark(int64_t row, const char* unit, Describe&& describe) {
  const bool first = bad_ == 0 || row < first_bad_, named = names_bad_ && !named_.contains(row);
  if (first || named) {
    const BadRecord bad = describe();
    if (first) problem_ = cat("'", bad.file, "' ", unit, " ", bad.record, ": ", bad.cause);
    if (first) first_bad_ = row;
    if (named) named_[row] = bad;
  }
  bad_ += !is_bad_[static_cast<size_t>(row)];
  is_bad_[static_cast<size_t>(row)] = 1;
}

BadRecords FeatureParser::parse_rows(Chunk& chunk, const RowSelection& selection, SampleBlock& block) {
  const int64_t rows = rows_ = selection.count(chunk.records);
  grow(block.label, rows * plan_.label_dim);
  for (const FeaturePlan::MissingLabel& missing : plan_.missing_labels)
    for (int64_t r = 0; r < rows; ++r)
      block.label[static_cast<size_t>(r * plan_.label_dim + missing.index)] = missing.value;
  grow(block.dense, rows * plan_.dense_dim);
  grow(block.keys, rows * plan_.slots);
  block.rows = rows;
  is_bad_.assign(static_cast<size_t>(rows), 0);
  bad_ = 0;
  names_bad_ = block.names_bad;
  named_.clear();
  for (size_t g = 0; g < plan_.groups.size(); ++g) {
    const FeatureGroup& group = plan_.groups[g];
    if (rows == 0) break;
    if (group.binary())
      parse_binary(group, chunk.parts[g], selection, block);
    else
      parse_csv(group, chunk.parts[g], chunk, selection, block);
  }
  if (bad_ > 0) {
    if (policy_ != BadRecordPolicy::skip) throw Error(Kind::data, problem_);
    leave_out_bad(rows, block);
  }
  one_key_each(block, block.rows, plan_.slots);
  BadRecords bad;
  if (bad_ > 0) bad.add_flagged(is_bad_, [&] { return problem_; });
  for (auto& [row, record] : named_) bad.records.push_back(std::move(record));
  return bad;
}

void FeatureParser::parse_binary(const FeatureGroup& group, const ChunkPart& part, const RowSelection& selection,
                                 SampleBlock& block) {
  const size_t width = group.width;
  const int64_t rows = rows_;
  const int64_t offset = part.first * static_cast<int64_t>(width);
  if (selection.some()) {
    read_records([&](int64_t at, std::byte* to, size_t bytes) { part.open->read_at(at, to, bytes); }, offset,
                 static_cast<int64_t>(width), selection.spans(), bytes_);
  } else {
    grow(bytes_, rows * static_cast<int64_t>(width));
    part.open->read_at(offset, bytes_.data(), static_cast<size_t>(rows) * width);
  }
  for (int64_t begin = 0; begin < rows; begin += kFeatureTileRows) {
    const int64_t end = std::min(begin + kFeatureTileRows, rows);
    for (const FeatureField& field : group.fields) {
      const std::byte* from = bytes_.data() + static_cast<size_t>(begin) * width + field.place;
      const bool right = with_stored_type(field.feature.type, [&]<class T>(T) {
        if (field.to != FeatureField::To::slot) {
          const Numbers numbers = numbers_of(plan_, field, block);
          return put_numbers<T>(from, width, end - begin, field, numbers.to + begin * numbers.step, numbers.step);
        }
        if constexpr (std::is_integral_v<T>)
          return put_ids<T>(from, width, end - begin, field, block.keys.data() + field.index * rows + begin);
        else
          return false;  // the section check rejects features of this type
      });
      if (!right) name_bad(field, part, selection, begin, end, width);
    }
  }
}

void FeatureParser::name_bad(const FeatureField& field, const ChunkPart& part, const RowSelection& selection,
                             int64_t begin, int64_t end, size_t width) {
  for (int64_t r = begin; r < end; ++r) {
    const std::byte* from = bytes_.data() + static_cast<size_t>(r) * width + field.place;
    std::string problem;
    if (field.to == FeatureField::To::slot) {
      const int64_t id = whole_at(field.feature.type, from);
      if (static_cast<uint64_t>(id) >= static_cast<uint64_t>(field.limit)) problem = id_problem(field, id);
    } else {
      problem = number_problem(field, real_at(field.feature.type, from));
    }
    if (!problem.empty())
      mark(r, "row", [&] {
        const int64_t at = part.first + selection.row(r);
        return BadRecord{part.open->path().string(), at + 1, at * static_cast<int64_t>(width), problem};
      });
  }
}

void FeatureParser::parse_csv(const FeatureGroup& group, const ChunkPart& part, const Chunk& chunk,
                              const RowSelection& selection, SampleBlock& block) {
  size_t span = 0;  // index of the current span of the selection
  int64_t row = 0, at = 0;
  for_each_csv_row(chunk, part, [&](std::string_view line, int64_t line_number) {
    if (selection.some()) {
      if (selection.spans()[span].end == at) ++span;
      if (at++ < selection.spans()[span].begin) return true;
    }
    if (const std::string problem = parse_line(group, line, row, rows_, block); !problem.empty())
      mark(row, "line", [&] {
        return BadRecord{.file = group.files[part.file].string(),
                         .record = line_number,
                         .cause = cat(problem, line_number == 1 ? "; a csv chunk has no header line" : "")};
      });
    return ++row < rows_;
  });
}

std::string FeatureParser::parse_line(const FeatureGroup& group, std::string_view line, int64_t row, int64_t rows,
                                      SampleBlock& block) {
  std::string problem;
  const std::span<const std::string_view> cells = cells_.split(group, line, problem);
  if (!problem.empty()) return problem;
  for (const FeatureField& field : group.fields) {
    const std::string_view cell = cells[field.place];
    int64_t whole = 0;
    double real = 0;
    const bool is_slot = field.to == FeatureField::To::slot;
    problem =
        is_whole(field.feature.type) ? read_cell(field.feature, cell, whole) : read_cell(field.feature, cell, real);
    if (!problem.empty()) return problem;
    if (is_slot) {
      if (static_cast<uint64_t>(whole) >= static_cast<uint64_t>(field.limit)) return id_problem(field, whole);
      block.keys[static_cast<size_t>(field.index * rows + row)] = whole + field.more;
      continue;
    }
    float value = is_whole(field.feature.type) ? static_cast<float>(whole) : static_cast<float>(real);
    if (field.feature.type == FeatureType::f16)
      value = static_cast<float>(Half(value));  // rounds like a binary file of this type
    if (!(std::fabs(value) <= most_of_number(field.feature))) return number_problem(field, static_cast<double>(value));
    const Numbers numbers = numbers_of(plan_, field, block);
    numbers.to[row * numbers.step] = value;
  }
  return "";
}

void FeatureParser::leave_out_bad(int64_t rows, SampleBlock& block) {
  const int64_t kept = rows - bad_;
  const auto pack = [&](auto* values, int64_t of_a_row) {
    auto* to = values;
    for (int64_t r = 0; r < rows; ++r)
      if (!is_bad_[static_cast<size_t>(r)]) {
        std::copy_n(values + r * of_a_row, of_a_row, to);
        to += of_a_row;
      }
  };
  pack(block.label.data(), plan_.label_dim);
  pack(block.dense.data(), plan_.dense_dim);
  for (int64_t s = 0; s < plan_.slots; ++s) {
    int64_t* column = block.keys.data() + s * rows;
    pack(column, 1);
    std::copy_n(column, kept, block.keys.data() + s * kept);
  }
  block.rows = kept;
}

}  // namespace hctr
