#include "checkpoint/state_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "device/copy.h"

namespace hctr {
namespace {

constexpr int64_t kReadBytes = int64_t{16} << 20;

}  // namespace

StateReader::StateReader(fs::path folder, Manifest manifest, bool exact, int rank, StreamRef stream)
    : input_(std::make_shared<Input>(Input{std::move(folder), std::move(manifest), exact, rank, stream})),
      of_rank_(exact ? rank : 0) {
  HCTR_EXPECT(!exact || rank < ranks(), "rank ", rank, " of a checkpoint of ", ranks(), " ranks");
}

StateReader StateReader::in(std::string_view scope) const {
  StateReader inner = *this;
  inner.scope_ += std::string(scope) + "/";
  return inner;
}

StateReader StateReader::of_rank(int rank) const {
  StateReader other = *this;
  other.of_rank_ = rank;
  return other;
}

std::string StateReader::place(std::string_view name) const {
  return cat("'", (input_->folder / index().file).string(), "', '", scope_, name, "'");
}

bool StateReader::has(std::string_view name) const {
  const std::string whole = scope_ + std::string(name);
  return index().values.find(whole) || std::any_of(index().arrays.begin(), index().arrays.end(),
                                                   [&](const StateArray& array) { return array.name == whole; });
}

const StateArray& StateReader::at(std::string_view name) const {
  const std::string whole = scope_ + std::string(name);
  for (const StateArray& array : index().arrays)
    if (array.name == whole) return array;
  throw Error(Kind::data, cat(place(name), ": the checkpoint does not hold it"));
}

int64_t StateReader::number(std::string_view name) const {
  const Json* value = index().values.find(scope_ + std::string(name));
  if (!value || !value->integer()) throw Error(Kind::data, cat(place(name), ": the checkpoint does not hold it"));
  return *value->integer();
}

void StateReader::tensor(std::string_view name, const Tensor& to) const {
  HCTR_EXPECT(to.dense(), "the state '", name, "' is no dense tensor");
  std::vector<int64_t> shape;
  for (int d = 0; d < to.rank(); ++d) shape.push_back(to.dim(d));
  array(name, name_of(to.dtype()), shape, to.bytes());
}

void StateReader::array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                        void* to) const {
  array(name, type, shape, [to](StreamRef stream, int64_t first, std::span<const std::byte> from) {
    copy_bytes(stream, static_cast<std::byte*>(to) + first, from.data(), from.size());
  });
}

void StateReader::array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                        const Copy& copy) const {
  const StateArray& from = at(name);
  if (from.type != type || from.shape != shape)
    throw Error(Kind::data, cat(place(name), " is ", describe_array(from.type, from.shape), ", and this run needs ",
                                describe_array(type, shape)));
  const int64_t all = from.bytes();
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kReadBytes, all)));
  for (int64_t first = 0; first < all; first += kReadBytes) {
    piece.resize(static_cast<size_t>(std::min(kReadBytes, all - first)));
    read(from, first, piece);
    copy(input_->stream, first, piece);
    input_->stream.synchronize();
  }
}

void StateReader::read(const StateArray& array, int64_t first, std::span<std::byte> to) const {
  const fs::path path = input_->folder / index().file;
  const File file = open_to_read(path, "checkpoint file");
  if (::fseeko(file.get(), array.offset + first, SEEK_SET) != 0 ||
      std::fread(to.data(), 1, to.size(), file.get()) != to.size())
    throw Error(Kind::io, cat("cannot read checkpoint file '", path.string(),
                              "': ", std::ferror(file.get()) ? std::strerror(errno) : "it became shorter meanwhile"));
}

}  // namespace hctr
