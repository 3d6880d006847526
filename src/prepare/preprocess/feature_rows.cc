#include "prepare/preprocess/feature_rows.h"

#include "core/base/progress.h"
#include "formats/features/feature_values.h"
#include "formats/io/byte_file.h"

namespace hctr {

FeatureRows::FeatureRows(const FeatureSpec& spec, const std::string& mapping, const std::vector<size_t>& wanted)
    : plan_(plan_columns(spec, mapping, wanted)), cutter_(plan_, 0, {}), columns_(wanted.size()) {
  size_t found = 0;
  for (const FeatureGroup& group : plan_.groups) found += group.fields.size();
  HCTR_EXPECT(found == columns_, "mapping ", mapping, " lacks ", columns_ - found, " of the required features");
}

bool FeatureRows::next(FeatureBlock& block) {
  block.columns.resize(columns_);
  for (FeatureValues& values : block.columns) {
    values.wholes.clear();
    values.reals.clear();
  }
  block.rows = 0;
  if (!cutter_.next(chunk_)) return false;
  block.rows = chunk_.records;
  for (size_t g = 0; g < plan_.groups.size(); ++g) {
    const FeatureGroup& group = plan_.groups[g];
    group.binary() ? read_binary(group, chunk_.parts[g], block) : read_csv(group, chunk_.parts[g], block);
  }
  return true;
}

void FeatureRows::read_csv(const FeatureGroup& group, const ChunkPart& part, FeatureBlock& block) {
  std::string problem;
  for_each_csv_row(chunk_, part, [&](std::string_view line, int64_t number) {
    const std::span<const std::string_view> cells = cells_.split(group, line, problem);
    for (const FeatureField& field : group.fields) {
      if (!problem.empty()) break;
      FeatureValues& values = block.columns[static_cast<size_t>(field.index)];
      problem = is_whole(field.feature.type)
                    ? read_cell(field.feature, cells[field.place], values.wholes.emplace_back())
                    : read_cell(field.feature, cells[field.place], values.reals.emplace_back());
    }
    if (!problem.empty())
      throw Error(Kind::data, cat("'", group.files[part.file].string(), "' line ", number, ": ", problem));
    return true;
  });
}

void FeatureRows::read_binary(const FeatureGroup& group, const ChunkPart& part, FeatureBlock& block) {
  const auto rows = static_cast<size_t>(block.rows);
  bytes_.resize(rows * group.width);
  part.open->read_at(part.first * static_cast<int64_t>(group.width), bytes_.data(), bytes_.size());
  for (const FeatureField& field : group.fields) {
    const FeatureType type = field.feature.type;
    FeatureValues& values = block.columns[static_cast<size_t>(field.index)];
    for (size_t row = 0; row < rows; ++row) {
      const std::byte* from = bytes_.data() + row * group.width + field.place;
      if (is_whole(type))
        values.wholes.push_back(whole_at(type, from));
      else
        values.reals.push_back(real_at(type, from));
      if (!field.feature.cardinality) continue;
      if (const int64_t id = values.wholes.back(); id < 0 || id >= *field.feature.cardinality)
        throw Error(Kind::data,
                    cat("'", part.open->path().string(), "' row ", part.first + static_cast<int64_t>(row) + 1, ": ",
                        feature_misfit(field.feature, static_cast<double>(id))));
    }
  }
}

int64_t FeatureRows::for_each_block(const ShowProgress& show, const std::string& what,
                                    const std::function<void(const FeatureBlock&)>& visit) {
  Progress progress(show, what, "bytes", bytes());
  int64_t rows = 0;
  for (FeatureBlock block; next(block);
       progress.update(bytes_done(), with_unit_prefix(static_cast<double>(rows)) + " rows")) {
    visit(block);
    rows += block.rows;
  }
  progress.finish();
  return rows;
}

int64_t FeatureRows::bytes() const {
  int64_t sum = 0;
  for (const FeatureGroup& group : plan_.groups)
    for (const fs::path& file : group.files) {
      const int64_t bytes = stream_bytes(file);
      if (bytes == 0) return 0;
      sum += bytes;
    }
  return sum;
}

}  // namespace hctr
