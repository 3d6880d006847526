#include "prepare/inspect/inspect_file.h"

#include <algorithm>

#include "core/base/expect.h"
#include "formats/catalog/first_rows.h"
#include "formats/io/byte_stream.h"
#include "formats/io/set_files.h"
#include "formats/norm/norm_cutter.h"
#include "formats/norm/norm_parse.h"
#include "formats/norm/norm_set.h"
#include "formats/parquet/parquet_metadata.h"
#include "formats/parquet/parquet_set.h"

namespace hctr {
namespace {

constexpr int64_t kLoose = 4096;  // loose limit of keys per slot; records are checked against the real limits later

/// The section with loose limits, so that a record that violates the real limits can still be read.
DataSection loose(DataSection section) {
  for (SparseInput& input : section.sparse) {
    const RecordShape::Input limits = input.limits();
    input.nnz_per_slot.reset();
    input.max_nnz = std::max(limits.max_nnz, kLoose);
    input.max_feature_num_per_sample = std::max(limits.max_keys, kLoose * input.slot_num);
  }
  section.bad_records = BadRecordPolicy::skip;
  // no scaling: shows stored values even of columns that training standardizes
  section.statistics = neutral_statistics(section);
  return section;
}

/// Makes a section with one sparse input for a self-describing file.
DataSection section_of(int64_t labels, int64_t dense, int64_t slots) {
  DataSection section;
  section.label.label_dim = labels;
  section.dense.dense_dim = dense;
  SparseInput input;
  input.top = "slots";
  input.slot_num = slots;
  input.max_nnz = kLoose;
  input.max_feature_num_per_sample = kLoose * slots;
  section.sparse = {input};
  return section;
}

DataSection section_of_metadata(const fs::path& path) {
  const auto metadata = read_parquet_metadata(path.parent_path());
  if (!metadata)
    throw Error(Kind::usage, cat("there is no ", kParquetMetadata, " in the folder of '", path.string(),
                                 "'; use --config to define the roles of its columns"));
  DataSection section =
      section_of(static_cast<int64_t>(metadata->labels.size()), static_cast<int64_t>(metadata->conts.size()),
                 static_cast<int64_t>(metadata->cats.size()));
  section.format = kParquetFormat;
  return section;
}

DataSection section_of_header(const fs::path& path) {
  ByteFile file(path);
  std::byte start[formats::kFrameLengthBytes + sizeof(formats::NormHeader)] = {};
  const size_t got = file.read(start, sizeof start);
  const bool framed =
      load<int32_t>(start) == static_cast<int32_t>(sizeof(formats::NormHeader)) && load<int32_t>(start + 4) == 1;
  const auto header = load<formats::NormHeader>(framed ? start + 4 : start);
  constexpr int64_t most = 1 << 20;
  if (got < sizeof(formats::NormHeader) || header.label_dim < 0 || header.label_dim > most || header.dense_dim < 0 ||
      header.dense_dim > most || header.slot_num < 0 || header.slot_num > most)
    throw Error(Kind::usage, cat("'", path.string(), "' has no Norm header; use --config to describe its records"));
  return section_of(header.label_dim, header.dense_dim, header.slot_num);
}

/// Opens the file as a sample set with loose limits, so that a record that violates the real limits can still be read.
std::shared_ptr<SampleSet> open_set(const fs::path& path, const DataSection& section, const InspectOptions& options) {
  return format_type(section.format).open(loose(section), {path.string(), 0}, options.key_width, Log::silent());
}

OpenData open_norm(const fs::path& path, const DataSection& section, const InspectOptions& options) {
  // The section's real limits help to determine the key width. Records are then read with loose limits.
  const NormInfo strict = read_norm_info(path, norm_demands(section, options.key_width));
  const DataSection wide = loose(section);
  auto info = std::make_shared<NormInfo>(strict);
  info->shape = record_shape(wide);
  info->sizes = NormSizes(info->shape, info->key_bytes);
  OpenData open;
  open.file = {.path = path, .bytes = info->bytes, .records = info->header.number_of_records};
  open.file.facts = cat("Norm, ", info->check == Check::sum ? "check sums" : "no check sums", ", label_dim ",
                        info->header.label_dim, ", dense_dim ", info->header.dense_dim, ", slot_num ",
                        info->header.slot_num, ", keys of ", info->key_bytes * 8, " bits");
  open.shape = record_shape(section);
  open.cutter = std::make_unique<NormCutter>(info, FilePosition{});
  open.parse = [info](Chunk& chunk, SampleBlock& block) {
    // a chunk from record_of() has no source: its only record is already found
    if (chunk.source) find_norm_records(*info, chunk);
    ParseScratch scratch;
    return parse_norm_chunk(*info, chunk, {}, BadRecordPolicy::skip, scratch, block);
  };
  open.find_records = [](Chunk&) { return true; };  // nothing to do: parsing has found the records
  return open;
}

}  // namespace

int64_t bytes_to_read(const fs::path& path, const InspectOptions& options) {
  if (!options.section || format_type(options.section->format).files) return stream_bytes(path);
  try {
    return open_set(path, *options.section, options)->bytes(0);
  } catch (const Error&) {  // ignored: opening the file later reports the same error
    return 0;
  }
}

OpenData open_data(const fs::path& path, const InspectOptions& options) {
  const DataSection section = options.section    ? *options.section
                              : is_parquet(path) ? section_of_metadata(path)
                                                 : section_of_header(path);
  if (section.format == kNormFormat) return open_norm(path, section, options);
  OpenData open;
  open.set = open_set(path, section, options);
  open.file = {.path = path,
               .bytes = open.set->bytes(0),
               .records = open.set->samples(),
               .is_estimate = open.set->samples_estimated()};
  open.file.facts = open.set->facts(0);
  if (open.file.facts.empty()) open.file.facts = section.format.name;
  open.shape = record_shape(section);
  open.cutter = open.set->open(0, {});
  open.parse = [set = open.set](Chunk& chunk, SampleBlock& block) { return set->parser()->parse(chunk, block); };
  open.find_records = [set = open.set](Chunk& chunk) { return set->find_records(chunk); };
  open.counts_records = open.set->counts_records();
  return open;
}

}  // namespace hctr
