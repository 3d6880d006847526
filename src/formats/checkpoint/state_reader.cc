#include "formats/checkpoint/state_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "formats/checkpoint/checkpoint_folder.h"

namespace hctr {
namespace {

constexpr int64_t kReadBytes = int64_t{16} << 20;

void read_bytes(const fs::path& path, int64_t at, std::span<std::byte> to) {
  if (to.empty()) return;
  const File file = open_to_read(path, "checkpoint file");
  if (::fseeko(file.get(), at, SEEK_SET) != 0 || std::fread(to.data(), 1, to.size(), file.get()) != to.size())
    throw Error(Kind::io,
                cat("cannot read checkpoint file '", path.string(),
                    "': ", std::ferror(file.get()) ? std::strerror(errno) : "the file was truncated while being read"));
}

/// Copies a byte range of the file, starting at offset `at`, from the pieces in memory.
void copy_pieces(const std::vector<HostBytes>& pieces, int64_t at, std::span<std::byte> to) {
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), at,
                                [](int64_t offset, const HostBytes& one) { return offset < one.offset; });
  while (!to.empty()) {
    HCTR_EXPECT(piece != pieces.begin(), "no piece of the state contains offset ", at);
    const std::span<const std::byte> from = (piece - 1)->span().subspan(static_cast<size_t>(at - (piece - 1)->offset));
    const size_t bytes = std::min(from.size(), to.size());
    HCTR_EXPECT(bytes > 0, "no piece of the state contains offset ", at);
    std::copy_n(from.data(), bytes, to.data());
    to = to.subspan(bytes);
    at += static_cast<int64_t>(bytes);
    ++piece;
  }
}

}  // namespace

StateReader::StateReader(fs::path folder, Manifest manifest, bool exact, int rank, StreamRef stream)
    : input_(std::make_shared<Input>(Input{std::move(folder), std::move(manifest), exact, rank, stream})),
      of_rank_(exact ? rank : 0) {
  HCTR_EXPECT(!exact || rank < ranks(), "rank ", rank, " of a checkpoint of ", ranks(), " ranks");
}

StateReader::StateReader(std::shared_ptr<const StateInMemory> memory, StreamRef stream)
    : input_(std::make_shared<Input>(Input{.folder = {},
                                           .manifest = {.about = {}, .progress = {}, .files = {memory->index}},
                                           .exact = true,
                                           .rank = 0,
                                           .stream = stream,
                                           .memory = memory})) {}

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
  return index().values.find(whole) || index().find(whole);
}

const StateArray& StateReader::at(std::string_view name) const {
  if (const StateArray* array = index().find(scope_ + std::string(name))) return *array;
  throw Error(Kind::data, cat(place(name), ": the checkpoint does not contain this entry"));
}

int64_t StateReader::number(std::string_view name) const {
  const Json* value = index().values.find(scope_ + std::string(name));
  if (!value || !value->integer())
    throw Error(Kind::data, cat(place(name),
                                ": the checkpoint does not contain "
                                "this entry"));
  return *value->integer();
}

void StateReader::tensor(std::string_view name, const Tensor& to) const {
  HCTR_EXPECT(to.dense(), "the state '", name, "' is not a dense tensor");
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
    throw Error(Kind::data, cat(place(name), " is ", describe_array(from.type, from.shape), ", but this run needs ",
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

std::optional<StateReader::Base> StateReader::base_of_next(const StateArray& array) const {
  const std::optional<Manifest::Base>& base = input_->manifest.base;
  const std::optional<int64_t> iteration = iteration_of(base ? base->folder : input_->folder);
  if (!iteration || array.shape.empty() || (base && !array.from_base)) return std::nullopt;
  return Base{*iteration, base ? array.from_base->rows : array.shape[0]};
}

void StateReader::read(const StateArray& array, int64_t first, std::span<std::byte> to) const {
  if (input_->memory) return copy_pieces(input_->memory->pieces, array.offset + first, to);
  if (array.from_base) return read_with_base(array, first, to);
  read_bytes(input_->folder / index().file, array.offset + first, to);
}

const std::vector<int32_t>& StateReader::changed_rows(const StateArray& array) const {
  const StateArray::FromBase& from = *array.from_base;
  const auto [at, unread] = input_->changed.try_emplace({of_rank_, from.changed});
  std::vector<int32_t>& rows = at->second;
  if (!unread || from.count == 0) return rows;
  std::vector<int32_t> read_rows(static_cast<size_t>(from.count));
  read(*index().find(from.changed), 0, std::as_writable_bytes(std::span(read_rows)));
  for (size_t i = 0; i < read_rows.size(); ++i)
    if (read_rows[i] < (i == 0 ? 0 : read_rows[i - 1] + 1) || read_rows[i] >= from.rows)
      throw Error(Kind::data, cat("'", (input_->folder / index().file).string(), "', '", from.changed,
                                  "': ", read_rows[i], " at place ", i, " is out of order in ", from.rows, " rows"));
  rows = std::move(read_rows);
  return rows;
}

void StateReader::read_with_base(const StateArray& array, int64_t first, std::span<std::byte> to) const {
  const StateArray::FromBase& from = *array.from_base;
  const fs::path own = input_->folder / index().file;
  const int64_t row_bytes = array.row_bytes(), old_bytes = from.rows * row_bytes,
                end = first + static_cast<int64_t>(to.size());
  if (row_bytes == 0 || to.empty()) return;
  const auto part = [&](int64_t begin, int64_t bytes) {
    return to.subspan(static_cast<size_t>(begin - first), static_cast<size_t>(bytes));
  };
  if (end > old_bytes) {
    const int64_t begin = std::max(first, old_bytes);
    read_bytes(own, array.offset + from.count * row_bytes + begin - old_bytes, part(begin, end - begin));
  }
  if (first >= old_bytes) return;
  const int64_t old_end = std::min(end, old_bytes);
  const Manifest::Base& base = *input_->manifest.base;
  const StateIndex& there = base.of->files.at(static_cast<size_t>(of_rank_));
  read_bytes(base.folder / there.file, there.find(array.name)->offset + first, part(first, old_end - first));
  if (from.count == 0) return;
  const std::vector<int32_t>& changed = changed_rows(array);
  const auto from_row = std::lower_bound(changed.begin(), changed.end(), first / row_bytes);
  const auto to_row = std::lower_bound(from_row, changed.end(), (old_end + row_bytes - 1) / row_bytes);
  std::vector<std::byte> rows(static_cast<size_t>((to_row - from_row) * row_bytes));
  read_bytes(own, array.offset + (from_row - changed.begin()) * row_bytes, rows);
  for (auto row = from_row; row != to_row; ++row) {
    const int64_t row_begin = *row * row_bytes, begin = std::max(first, row_begin),
                  bytes = std::min(old_end, row_begin + row_bytes) - begin;
    std::copy_n(rows.data() + (row - from_row) * row_bytes + begin - row_begin, bytes, part(begin, bytes).data());
  }
}

}  // namespace hctr
