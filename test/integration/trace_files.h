// Generates the input files of a traced model from a few parameters, in the same way as test/traces/derived.py.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/random.h"
#include "support/run_program.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::test {

class TraceFiles {
 public:
  /// `derived`: the member "derived" of the trace. `config` must outlive this object.
  TraceFiles(const Json& derived, const Config& config)
      : seed_(static_cast<uint64_t>(number(derived, "seed"))),
        samples_(static_cast<int64_t>(number(derived, "samples"))),
        vocabulary_(static_cast<int64_t>(number(derived, "vocabulary"))),
        bound_(number(derived, "bound")),
        config_(config) {}

  /// Writes the samples, their file list, and the model files of the config to `folder`.
  void write(const std::filesystem::path& folder, int64_t dense_parameters) const {
    const std::filesystem::path file = folder / "samples.data";
    data_test::write_rows(file, data_test::style_of(config_.data, Check::sum, 8), rows());
    write_file_list(folder / config_.data.source, {file}, true);
    write_file(folder / config_.solver.dense_model_file, initial(kWeight, 0, dense_parameters));
    for (size_t e = 0; e < config_.embeddings.size(); ++e)
      write_file(folder / config_.solver.sparse_model_file.at(e), sparse_model(e));
  }

 private:
  enum Stream : uint64_t { kLabel, kDense, kNnz, kKey, kWeight, kFirstTable };

  static double number(const Json& in, const char* key) { return in.find(key)->number(); }
  template <class T>
  static std::string bytes_of(const T& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }

  /// Returns a uniform number in [0, 1) with 24 bits, which is exact in f32.
  double unit(uint64_t stream, int64_t index) const {
    return static_cast<double>(mix64(mix64(100 * seed_ + stream) + static_cast<uint64_t>(index)) >> 40) * 0x1p-24;
  }

  /// Returns uniform numbers in [-bound, bound) as f32 bytes.
  std::string initial(uint64_t stream, int64_t first, int64_t count) const {
    std::string values;
    for (int64_t i = first; i < first + count; ++i)
      values += bytes_of(static_cast<float>((2 * unit(stream, i) - 1) * bound_));
    return values;
  }

  std::vector<data_test::Row> rows() const {
    const DataSection& data = config_.data;
    const int64_t labels = data.label.label_dim, dense = data.dense.dense_dim;
    std::vector<data_test::Row> all(static_cast<size_t>(samples_));
    for (int64_t i = 0; i < samples_; ++i) {
      data_test::Row& row = all[static_cast<size_t>(i)];
      for (int64_t d = 0; d < dense; ++d) row.dense.push_back(static_cast<float>(unit(kDense, i * dense + d)));
      for (int64_t k = 0; k < labels; ++k)
        row.label.push_back(unit(kDense, i * dense + k) + unit(kLabel, i * labels + k) > 1 ? 1.0f : 0.0f);
      for (const SparseInput& input : data.sparse)
        for (int64_t s = 0; s < input.slot_num; ++s)
          row.slots.push_back(bag(i * data.slots() + static_cast<int64_t>(row.slots.size()), input.limits().max_nnz));
    }
    return all;
  }

  std::vector<int64_t> bag(int64_t place, int64_t max_nnz) const {
    std::vector<int64_t> keys(static_cast<size_t>(unit(kNnz, place) * static_cast<double>(max_nnz + 1)));
    for (size_t k = 0; k < keys.size(); ++k) {
      const double u = unit(kKey, 8 * place + static_cast<int64_t>(k));
      keys[k] = static_cast<int64_t>(u * u * static_cast<double>(vocabulary_));
    }
    return keys;
  }

  std::string sparse_model(size_t embedding) const {
    const EmbeddingSection& section = config_.embeddings[embedding].section;
    const bool localized = section.identity_by_slot();
    const auto input = std::find_if(config_.data.sparse.begin(), config_.data.sparse.end(),
                                    [&](const SparseInput& i) { return i.top == section.bottom; });
    std::string file;
    for (int64_t slot = 0; slot < (localized ? int64_t{input->slot_num} : 1); ++slot)
      for (int64_t key = 0; key < vocabulary_; ++key)
        file += bytes_of(key) + (localized ? bytes_of(slot) : "") +
                initial(kFirstTable + embedding, (slot * vocabulary_ + key) * section.dim, section.dim);
    return file;
  }

  uint64_t seed_;
  int64_t samples_, vocabulary_;
  double bound_;
  const Config& config_;
};

}  // namespace hctr::test
