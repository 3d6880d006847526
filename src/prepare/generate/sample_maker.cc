#include "prepare/generate/sample_maker.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "formats/data/key_space.h"

namespace hctr {
namespace {

constexpr double kSpread = 1.36;   // standard deviation of logits; with 25 % positives the best AUC is 0.80
constexpr int64_t kPilot = 65536;  // number of samples to which scale and bias are fitted
constexpr int64_t kDefaultVocabulary = 10000;

std::vector<int64_t> vocabulary_for(const DataSection& section, const GenerateOptions& options) {
  std::vector<int64_t> sizes = options.vocabulary;
  if (sizes.empty() && static_cast<int64_t>(section.slot_size_array.size()) == section.slots())
    sizes = section.slot_size_array;
  if (sizes.empty()) sizes = {kDefaultVocabulary};
  if (sizes.size() == 1) sizes.resize(static_cast<size_t>(section.slots()), sizes[0]);
  if (static_cast<int64_t>(sizes.size()) != section.slots())
    throw Error(Kind::usage,
                cat("--vocabulary has ", sizes.size(), " numbers; the Data layer has ", section.slots(), " slots"));
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 1 || size > int64_t{1} << 40; }))
    throw Error(Kind::usage, "each slot needs a vocabulary of 1 to 2^40 keys");
  return sizes;
}

/// The maximum number of keys of a slot: the slot's own limit, or an equal share of the input's limit, but at most
/// `asked`.
int64_t even_share(const RecordShape::Input& input, int64_t slot, int64_t asked) {
  if (asked > input.max_nnz)
    throw Error(Kind::usage, cat("up to ", asked, " keys per slot were requested; the Data layer allows max_nnz ",
                                 input.max_nnz, " in sparse input \"", input.name, "\""));
  if (!input.nnz.empty()) return asked > 0 ? std::min(asked, input.most_of(slot)) : input.most_of(slot);
  if (asked > 0 && asked * input.slots > input.max_keys)
    throw Error(Kind::usage,
                cat("up to ", asked, " keys in each of ", input.slots, " slots were requested; the Data layer allows ",
                    "max_feature_num_per_sample ", input.max_keys, " in sparse input \"", input.name, "\""));
  return asked > 0 ? asked : std::min(input.max_nnz, std::max<int64_t>(1, input.max_keys / input.slots));
}

std::vector<int64_t> largest_numbers(const RecordShape& shape, int64_t asked) {
  std::vector<int64_t> most;
  for (const RecordShape::Input& input : shape.inputs)
    for (int64_t s = 0; s < input.slots; ++s) most.push_back(even_share(input, s, asked));
  return most;
}

/// The fixed number of keys of each slot.
std::vector<int64_t> fixed_numbers(const RecordShape& shape, std::vector<int64_t> nnz) {
  if (nnz.size() == 1) nnz.resize(static_cast<size_t>(shape.slots()), nnz[0]);
  if (static_cast<int64_t>(nnz.size()) != shape.slots())
    throw Error(Kind::usage, cat("--nnz has ", nnz.size(), " numbers; the Data layer has ", shape.slots(), " slots"));
  size_t slot = 0;
  for (const RecordShape::Input& input : shape.inputs) {
    int64_t all = 0;
    for (int64_t s = 0; s < input.slots; all += nnz[slot], ++s, ++slot)
      if (nnz[slot] > input.most_of(s) || nnz[slot] < 0)
        throw Error(Kind::usage, cat("--nnz ", nnz[slot], " for slot ", slot, ": the Data layer allows 0 to ",
                                     input.most_of(s), " in sparse input \"", input.name, "\""));
    if (all > input.max_keys)
      throw Error(Kind::usage, cat("--nnz gives ", all, " keys per sample to sparse input \"", input.name,
                                   "\"; the Data layer allows max_feature_num_per_sample ", input.max_keys));
  }
  return nnz;
}

}  // namespace

/// Checks the section for Raw, whose records have exactly one 32-bit key per slot, stored relative to the slot's
/// offset.
void SampleMaker::check_raw() const {
  if (hashed_)
    throw Error(Kind::usage, "Raw data have 32-bit keys, but hashed keys need 64 bits: use --keys contiguous");
  if (std::any_of(most_nnz_.begin(), most_nnz_.end(), [](int64_t nnz) { return nnz != 1; }))
    throw Error(Kind::usage, "Raw data have exactly one key in each slot; remove --nnz and --max-nnz");
}

/// Checks the section for formats whose readers add an offset to the keys of each slot: the sum of the preceding sizes
/// in slot_size_array.
void SampleMaker::check_added(const DataSection& section) const {
  if (static_cast<int64_t>(section.slot_size_array.size()) != section.slots()) return;
  if (hashed_)
    throw Error(Kind::usage,
                "hashed keys cannot be combined with slot_size_array, because the reader of Parquet data adds the "
                "sizes of earlier slots to the keys: remove slot_size_array, or use --keys contiguous");
  if (vocabulary_ != section.slot_size_array)
    throw Error(Kind::usage,
                "--vocabulary differs from slot_size_array of the Data layer, which the reader of Raw and Parquet "
                "data uses to shift keys; remove one of the two");
}

/// The random number generator of one sample.
class SampleMaker::Draws {
 public:
  Draws(uint64_t key, uint64_t index) : key_(key), index_(index) {}
  uint32_t bits() {
    if (used_ == 4) {
      four_ = philox(key_, index_, next_++);
      used_ = 0;
    }
    return four_.v[used_++];
  }
  double unit() {
    const uint64_t high = bits() >> 5, low = bits() >> 6;
    return static_cast<double>(high << 26 | low) * 0x1p-53;
  }

 private:
  uint64_t key_, index_, next_ = 0;
  Random4 four_{};
  int used_ = 4;
};

SampleMaker::SampleMaker(const DataSection& section, const GenerateOptions& options)
    : shape_(record_shape(section)),
      style_{.label_dim = shape_.label_dim,
             .dense_dim = shape_.dense_dim,
             .slots = shape_.slots(),
             .check = section.check.value_or(Check::sum),
             .key_bytes = options.key_bytes},
      seed_(options.seed),
      hashed_(options.hashed_keys),
      vocabulary_(vocabulary_for(section, options)),
      fixed_nnz_(!options.nnz.empty()) {
  if (hashed_ && style_.key_bytes == 4)
    throw Error(Kind::usage, "hashed keys need 64 bits; use --key-bits 64 or --keys contiguous");
  offsets_.resize(vocabulary_.size());
  std::exclusive_scan(vocabulary_.begin(), vocabulary_.end(), offsets_.begin(), int64_t{0});
  const int64_t total = std::accumulate(vocabulary_.begin(), vocabulary_.end(), int64_t{0});
  if (style_.key_bytes == 4 && total > std::numeric_limits<uint32_t>::max())
    throw Error(Kind::usage, cat("a vocabulary of ", total, " keys does not fit 32 bits; use --key-bits 64"));

  std::vector<int64_t> sizes;
  for (const int64_t size : vocabulary_) {
    const auto found = std::find(sizes.begin(), sizes.end(), size);
    law_of_.push_back(static_cast<size_t>(found - sizes.begin()));
    if (found != sizes.end()) continue;
    sizes.push_back(size);
    laws_.emplace_back(size, options.alpha);
  }
  most_nnz_ = fixed_nnz_ ? fixed_numbers(shape_, options.nnz)
                         : largest_numbers(shape_, options.written_as == WrittenAs::raw ? 1 : options.max_nnz);
  std::vector<double> mean_nnz;
  for (const int64_t most : most_nnz_)
    mean_nnz.push_back(fixed_nnz_ ? static_cast<double>(most) : (1 + static_cast<double>(most)) / 2);
  if (options.written_as == WrittenAs::raw) check_raw();
  if (options.written_as == WrittenAs::raw || options.written_as == WrittenAs::parquet) check_added(section);

  PlantedSample sample;
  std::vector<double> raw_values(kPilot);
  for (int64_t label = 0; label < shape_.label_dim; ++label) {
    PlantedTruth& truth = truths_.emplace_back(shape_, mean_nnz, options.interactions, seed_, label, options.related);
    truth.prepare(vocabulary_);
    for (int64_t i = 0; i < kPilot; ++i) {
      Draws draws(random_key(seed_, random_stream("pilot")), static_cast<uint64_t>(i));
      draw_inputs(draws, sample);
      raw_values[static_cast<size_t>(i)] = truth.raw(sample);
    }
    truth.calibrate(raw_values, kSpread * options.signal, options.positive_share);
  }
}

void SampleMaker::draw_inputs(Draws& draws, PlantedSample& sample) const {
  sample.dense.resize(static_cast<size_t>(shape_.dense_dim));
  for (float& value : sample.dense) value = unit_float(draws.bits());
  sample.nnz.clear();
  sample.ranks.clear();
  size_t slot = 0;
  for (const RecordShape::Input& input : shape_.inputs) {
    int64_t left = input.max_keys;
    for (int64_t s = 0; s < input.slots; ++s, ++slot) {
      // the last slots are empty if the limit of the input is used up
      const int64_t most = std::min(most_nnz_[slot], left);
      const int64_t nnz =
          most <= 1 || fixed_nnz_ ? most : 1 + static_cast<int64_t>(draws.unit() * static_cast<double>(most));
      left -= nnz;
      sample.nnz.push_back(static_cast<int32_t>(nnz));
      for (int64_t k = 0; k < nnz; ++k) sample.ranks.push_back(laws_[law_of_[slot]].rank(draws.unit()));
    }
  }
}

bool SampleMaker::may_run_out() const {
  size_t slot = 0;
  for (const RecordShape::Input& input : shape_.inputs) {
    int64_t all = 0;
    for (int64_t s = 0; s < input.slots; ++s, ++slot) all += most_nnz_[slot];
    if (all > input.max_keys) return true;
  }
  return false;
}

void SampleMaker::make(uint64_t part, int64_t index, GeneratedSample& scratch, double* probability,
                       bool* positive) const {
  Draws draws(random_key(seed_, part), static_cast<uint64_t>(index));
  draw_inputs(draws, scratch.sample);
  scratch.label.clear();
  for (size_t k = 0; k < truths_.size(); ++k) {
    const double p = truths_[k].probability(truths_[k].raw(scratch.sample));
    probability[k] = p;
    positive[k] = draws.unit() < p;
    scratch.label.push_back(positive[k] ? 1.0f : 0.0f);
  }
  scratch.keys.clear();
  const int64_t* rank = scratch.sample.ranks.data();
  for (size_t slot = 0; slot < offsets_.size(); ++slot)
    for (int32_t k = 0; k < scratch.sample.nnz[slot]; ++k, ++rank)
      scratch.keys.push_back(hashed_ ? scattered_key(slot << 40 | static_cast<uint64_t>(*rank))
                                     : offsets_[slot] + *rank);
}

}  // namespace hctr
