// Writes small Norm data sets for tests from plain rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "formats/data/data_section.h"
#include "formats/io/file_list.h"
#include "formats/norm/norm_cutter.h"
#include "formats/norm/norm_parse.h"
#include "prepare/write/norm_writer.h"
#include "support/temporary_folder.h"

namespace hctr::data_test {

using Folder = test::TemporaryFolder;

struct Row {
  std::vector<float> label, dense;
  std::vector<std::vector<int64_t>> slots;
};

inline DataSection section_of(int64_t label_dim, int64_t dense_dim, std::vector<SparseInput> sparse) {
  DataSection section;
  section.label = {"label", label_dim};
  section.dense = {"dense", dense_dim};
  section.sparse = std::move(sparse);
  return section;
}

inline SparseInput input_of(const std::string& top, int64_t slots, int64_t max_nnz, int64_t max_keys) {
  SparseInput input;
  input.top = top;
  input.slot_num = slots;
  input.max_nnz = max_nnz;
  input.max_feature_num_per_sample = max_keys;
  return input;
}

/// A section with one label, three dense values, an input with one key per slot, and an input with up to two keys per
/// slot.
inline DataSection wide_and_deep_section() {
  return section_of(1, 3, {input_of("wide", 1, 4, 4), input_of("deep", 5, 2, 7)});
}

/// Describes a kind of Norm file. `bags`: slots have any number of keys.
struct NormVariant {
  Check check;
  int key_bytes;
  bool bags;
};
inline const std::vector<NormVariant> kNormVariants = {
    {Check::none, 4, false}, {Check::none, 8, false}, {Check::sum, 4, false}, {Check::sum, 8, false},
    {Check::none, 4, true},  {Check::none, 8, true},  {Check::sum, 4, true},  {Check::sum, 8, true}};

inline NormStyle style_of(const DataSection& section, Check check, int key_bytes) {
  return {.label_dim = section.label.label_dim,
          .dense_dim = section.dense.dense_dim,
          .slots = section.slots(),
          .check = check,
          .key_bytes = key_bytes};
}

inline void append_row(const NormStyle& style, const Row& row, std::vector<std::byte>& bytes) {
  std::vector<int32_t> nnz;
  std::vector<int64_t> keys;
  for (const auto& slot : row.slots) {
    nnz.push_back(static_cast<int32_t>(slot.size()));
    keys.insert(keys.end(), slot.begin(), slot.end());
  }
  append_norm_record(style, row.label, row.dense, nnz, keys, bytes);
}

inline void write_rows(const fs::path& path, const NormStyle& style, const std::vector<Row>& rows) {
  NormWriter writer(path, style);
  std::vector<std::byte> bytes;
  for (const Row& row : rows) append_row(style, row, bytes);
  writer.append(bytes, static_cast<int64_t>(rows.size()));
  writer.commit();
}

/// Random rows within the limits of the section. Labels count up, and keys are below `key_limit`. Without `bags` each
/// slot has one key.
inline std::vector<Row> random_rows(const DataSection& section, int64_t count, uint64_t seed, uint64_t key_limit,
                                    bool bags) {
  std::vector<Row> rows;
  uint64_t draw = mix64(seed);
  const auto below = [&](uint64_t limit) { return (draw = mix64(draw)) % limit; };
  for (int64_t i = 0; i < count; ++i) {
    Row row;
    for (int64_t k = 0; k < section.label.label_dim; ++k) row.label.push_back(static_cast<float>(i + k));
    for (int64_t k = 0; k < section.dense.dense_dim; ++k) row.dense.push_back(static_cast<float>(below(1000)) / 8);
    for (const SparseInput& input : section.sparse) {
      auto left = static_cast<uint64_t>(*input.max_feature_num_per_sample);
      for (int64_t s = 0; s < input.slot_num; ++s) {
        const uint64_t most = std::min(left, static_cast<uint64_t>(*input.max_nnz));
        const uint64_t nnz = bags ? below(most + 1) : 1;
        left -= nnz;
        row.slots.emplace_back();
        for (uint64_t k = 0; k < nnz; ++k) row.slots.back().push_back(static_cast<int64_t>(below(key_limit)));
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Returns "kind: message" of the Error that `body` throws; empty if `body` does not throw.
template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return cat(kind_name(error.kind()), ": ", error.what());
  }
  return "";
}

inline std::vector<std::byte> bytes_of(const fs::path& path) {
  const std::string text = read_text(path, "test file");
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline void put_bytes(const fs::path& path, const std::vector<std::byte>& bytes) {
  write_text(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// Reads every sample of a small file, with the cutter and parser of training. `skipped`, if not null, counts records
/// with a wrong checksum. `may_pack`: allows packed blocks, as training does.
inline SampleBlock read_norm_file(const fs::path& path, const NormDemands& demands, int64_t* skipped = nullptr,
                                  bool may_pack = false, std::optional<BadRecordPolicy> policy = {}) {
  const auto info = std::make_shared<const NormInfo>(read_norm_info(path, demands));
  NormCutter cutter(info, {});
  Chunk all;
  all.begin.offset = info->first_block;
  all.begins.assign(1, 0);
  for (Chunk chunk; cutter.next(chunk);) {
    find_norm_records(*info, chunk);
    const uint32_t shift = static_cast<uint32_t>(all.buffer.size()) - chunk.begins.front();
    all.buffer.insert(all.buffer.end(), chunk.buffer.begin() + chunk.begins.front(),
                      chunk.buffer.begin() + chunk.begins.back());
    for (size_t i = 1; i < chunk.begins.size(); ++i) all.begins.push_back(chunk.begins[i] + shift);
    all.records += chunk.records;
  }
  all.buffer.resize(all.buffer.size() + kPatternSlack);
  ParseScratch scratch;
  SampleBlock block;
  block.may_pack = may_pack;
  const BadRecords bad = parse_norm_chunk(*info, all, {}, policy, scratch, block);
  if (skipped) *skipped = bad.count;
  return block;
}

/// Removes the last `count` bytes of a file.
inline void cut_bytes(const fs::path& path, uintmax_t count) { fs::resize_file(path, fs::file_size(path) - count); }

/// Returns "" if `text` contains `part`, otherwise a message. EXPECT_EQ(missing(text, part), "") prints both.
inline std::string missing(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos ? "" : "\"" + part + "\" is not in \"" + text + "\"";
}
#define EXPECT_SAYS(text, part) EXPECT_EQ(::hctr::data_test::missing(text, part), "")

}  // namespace hctr::data_test
