#include "formats/model/opt_states_file.h"

#include <cerrno>
#include <cstring>
#include <tuple>

#include "config/sections/optimizer_catalog.h"
#include "core/base/expect.h"
#include "core/base/half.h"
#include "core/base/not_finite.h"

namespace hctr {
namespace {

constexpr const char* kStatesFile = "file of optimizer states";

}  // namespace

OptStatesWriter::OptStatesWriter(FileSet& set, const fs::path& path, const TableSpec& spec, int64_t rows)
    : file_(set.add(path)), name_(spec.name), states_(spec.optimizer.states()), dim_(spec.state_dim()), rows_(rows) {}

void OptStatesWriter::add(const RowBlock& block) {
  for (int64_t s = 0; s < states_; ++s) {
    const std::span<const float> values = block.states[s];
    if (const int64_t at = find_not_finite(values); at >= 0)
      throw Error(Kind::data,
                  cat("the optimizer's state of key ", block.keys[static_cast<size_t>(at / dim_)], " in table '", name_,
                      "' holds ", values[static_cast<size_t>(at)], ": training diverged, and this model is not saved"));
    file_.write_at(static_cast<long>((s * rows_ + done_) * dim_ * 4), values.data(), values.size_bytes());
  }
  done_ += static_cast<int64_t>(block.keys.size());
}

void OptStatesWriter::finish() {
  HCTR_EXPECT(done_ == rows_, "table '", name_, "' of ", rows_, " rows has states for only ", done_);
  file_.finish();
}

OptStatesReader::OptStatesReader(const fs::path& path, const TableSpec& spec, int64_t rows, const fs::path& model_file)
    : path_(path),
      model_file_(model_file),
      file_(open_to_read(path, kStatesFile)),
      states_(spec.optimizer.states()),
      dim_(spec.state_dim()),
      rows_(rows) {
  const auto bytes = static_cast<int64_t>(fs::file_size(path)), numbers = states_ * dim_ * rows;
  if (bytes == numbers * 4) return;
  bytes_each_ = 2;
  if (bytes == numbers * 2) return;
  throw Error(Kind::data, cat(kStatesFile, " '", path.string(), "' has ", bytes, " bytes, but the ", rows, " rows of '",
                              model_file.string(), "' need ", numbers * 4, " bytes for the states of ",
                              optimizer_type(spec.optimizer.kind).name, " (", states_,
                              states_ == 1 ? " state of " : " states of ", dim_, dim_ == 1 ? " number" : " numbers",
                              "): the file belongs to another model or optimizer, or HugeCTR wrote the file, whose "
                              "order of states is undocumented"));
}

std::vector<float> OptStatesReader::read(int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  const auto read_as = [&]<class T>(T* to) {
    if (std::fseek(file_.get(), static_cast<long>(first * bytes_each_), SEEK_SET) != 0 ||
        std::fread(to, sizeof(T), values.size(), file_.get()) != values.size())
      throw Error(Kind::io,
                  cat("cannot read ", kStatesFile, " '", path_.string(), "': ",
                      std::ferror(file_.get()) ? std::strerror(errno) : "the file was truncated while being read"));
  };
  if (bytes_each_ == 4) {
    read_as(values.data());
  } else {
    std::vector<Half> halves(values.size());
    read_as(halves.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(halves[i]);
  }
  if (const int64_t at = find_not_finite(values); at >= 0)
    throw Error(Kind::data, cat(kStatesFile, " '", path_.string(), "': number ", first + at, " is ",
                                values[static_cast<size_t>(at)]));
  return values;
}

void OptStatesReader::add_to(RowBlock& block, std::span<const uint64_t> slots) {
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const uint64_t slot = slots.empty() ? 0 : slots[i];
    if (done_ + static_cast<int64_t>(i) > 0 && std::tuple(slot, block.keys[i]) <= std::tuple(last_slot_, last_key_))
      throw Error(Kind::data, cat("the rows of '", model_file_.string(), "' are not sorted by slot and key (row ",
                                  done_ + static_cast<int64_t>(i), "), so that '", path_.string(),
                                  "' does not assign states to rows"));
    last_slot_ = slot;
    last_key_ = block.keys[i];
  }
  const auto count = static_cast<int64_t>(block.keys.size());
  for (int64_t s = 0; s < states_; ++s) {
    values_[s] = read((s * rows_ + done_) * dim_, count * dim_);
    block.states[s] = values_[s];
  }
  done_ += count;
}

}  // namespace hctr
