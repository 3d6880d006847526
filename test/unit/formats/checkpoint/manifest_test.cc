#include "formats/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "core/base/expect.h"
#include "core/base/file_checksum.h"
#include "core/base/thread_pool.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class SavedState : public testing::Test {
 protected:
  /// Writes a checkpoint with two arrays and a number.
  void write(Device device = kCpu) {
    Runtime& runtime = runtime_of(device);
    StateIndex index;
    index.file = "rank_0.state";
    StateFileWriter file(folder_ / index.file);
    const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
    StateWriter to(0, runtime.compute_stream(), index, sink, {});
    Buffer memory(device, 6 * sizeof(float));
    const Tensor tensor(memory.data(), TensorSpec(DType::f32, {2, 3}), device);
    from_host(runtime.compute_stream(), tensor, values_);
    to.in("layer").in("fc").tensor("weights", tensor);
    to.in("layer").list("keys", std::vector<int64_t>{-1, 1LL << 40});
    to.number("steps", -5);
    file.commit(index);
    write_manifest(folder_.path(), {Json(Json::Object{{"run", "a"}}), Json(Json::Object{{"loss", 0.5}}), {index}, {}});
  }
  StateReader reader(Device device = kCpu) {
    return StateReader(folder_.path(), read_manifest(folder_.path()), true, 0, runtime_of(device).compute_stream());
  }

  TemporaryFolder folder_;
  std::vector<float> values_ = {1, 2, 3, 4, 5, -0.0f};
};

TEST_F(SavedState, ComesBackAsItWas) {
  for (const Device device : devices()) {
    write(device);
    const Manifest manifest = read_manifest(folder_.path());
    verify_files(folder_.path(), manifest);
    EXPECT_EQ(manifest.about.text(), R"({"run":"a"})");
    EXPECT_EQ(manifest.progress.find("loss")->number(), 0.5);
    const StateReader from = reader(device);
    Buffer memory(device, 6 * sizeof(float));
    const Tensor tensor(memory.data(), TensorSpec(DType::f32, {2, 3}), device);
    from.in("layer").in("fc").tensor("weights", tensor);
    EXPECT_EQ(to_host<float>(runtime_of(device).compute_stream(), tensor), values_);
    std::vector<int64_t> keys;
    from.in("layer").list("keys", keys);
    EXPECT_EQ(keys, (std::vector<int64_t>{-1, 1LL << 40}));
    EXPECT_EQ(from.number("steps"), -5);
    EXPECT_TRUE(from.has("steps") && from.has("layer/keys") && !from.has("keys"));
  }
}

/// Several threads that write a file through staging memory produce the same bytes and checksum as one thread.
TEST_F(SavedState, IsTheSameByAnyNumberOfThreads) {
  std::vector<uint8_t> bytes(size_t{45} * 1000 * 1000 + 7);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
  ThreadPool threads(3);
  for (const Device device : devices()) {
    const StreamRef stream = runtime_of(device).compute_stream();
    const auto count = static_cast<int64_t>(bytes.size());
    Buffer memory(device, bytes.size());
    copy_bytes(stream, memory.data(), bytes.data(), bytes.size());
    stream.synchronize();
    StateIndex one, several;
    one.file = "one.state";
    several.file = "several.state";
    const auto save = [&](StateIndex& index, StagedCopies* staged, const auto& write) {
      StateFileWriter file(folder_ / index.file);
      const StateWriter::Sink sink = [&](const HostBytes& piece) { write(file, piece.span()); };
      StateWriter(0, stream, index, sink, {}, {staged}).array("bytes", "u8", {count}, memory.data());
      file.commit(index);
    };
    save(one, nullptr, [](StateFileWriter& file, std::span<const std::byte> piece) { file.write(piece); });
    StagedCopies staged(device, threads);
    save(several, &staged,
         [&](StateFileWriter& file, std::span<const std::byte> piece) { file.write(piece, threads); });
    const std::string written = read_file(folder_ / several.file);
    EXPECT_TRUE(written == std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    EXPECT_TRUE(written == read_file(folder_ / one.file));
    EXPECT_EQ(several.crc, one.crc);
    EXPECT_EQ(checksum_of(folder_ / several.file, "file").crc, several.crc);
  }
}

TEST_F(SavedState, OfAnotherShapeIsAnErrorThatNamesBoth) {
  write();
  std::vector<float> to(6);
  const StateReader from = reader().in("layer").in("fc");
  EXPECT_EQ(message_of(Kind::data, [&] { from.array("weights", "f32", {3, 2}, to.data()); }),
            cat("'", (folder_ / "rank_0.state").string(),
                "', 'layer/fc/weights' is f32 [2,3], but this run needs f32 [3,2]"));
  EXPECT_EQ(message_of(Kind::data, [&] { from.array("bias", "f32", {1}, to.data()); }),
            cat("'", (folder_ / "rank_0.state").string(),
                "', 'layer/fc/bias': the checkpoint does not contain "
                "this entry"));
  EXPECT_NE(message_of(Kind::data, [&] { from.number("steps"); }).find("does not contain this entry"),
            std::string::npos);
}

/// Changes every byte of both files in two ways, and truncates both files at every position.
TEST_F(SavedState, IsNeverReadWhenAByteIsChangedOrMissing) {
  write();
  const auto load = [&] { verify_files(folder_.path(), read_manifest(folder_.path())); };
  for (const char* name : {"manifest.json", "rank_0.state"}) {
    const std::string whole = read_file(folder_ / name);
    ASSERT_GT(whole.size(), 20u);
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const int flip : {1, 32, 128}) {
        std::string other = whole;
        other[at] = static_cast<char>(other[at] ^ flip);
        write_file(folder_ / name, other);
        const std::string message = message_of(Kind::data, load);
        EXPECT_NE(message.find(name), std::string::npos) << "byte " << at << ": " << message;
      }
      write_file(folder_ / name, whole.substr(0, at));
      const std::string message = message_of(Kind::data, load);
      EXPECT_NE(message.find(name), std::string::npos) << "cut at " << at << ": " << message;
    }
    write_file(folder_ / name, whole + "x");
    EXPECT_NE(message_of(Kind::data, load).find(name), std::string::npos);
    write_file(folder_ / name, whole);
  }
  load();
  std::filesystem::remove(folder_ / "rank_0.state");
  EXPECT_NE(message_of(Kind::io, load).find("rank_0.state"), std::string::npos);
}

/// A checkpoint of rows, and an increment with changed and new rows.
class SavedChanges : public testing::Test {
 protected:
  static constexpr int64_t kWidth = 3, kBaseRows = 20, kRows = 24;

  void SetUp() override {
    std::vector<uint32_t> rows(kBaseRows * kWidth);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i);
    write("iteration_000001", {}, [&](StateWriter to) { to.array("rows", "u32", {kBaseRows, kWidth}, rows.data()); });
    now_ = rows;
    now_.resize(kRows * kWidth);
    for (const int32_t row : changed_)
      for (int64_t e = 0; e < kWidth; ++e) now_[static_cast<size_t>(row * kWidth + e)] += 1000;
    for (size_t i = kBaseRows * kWidth; i < now_.size(); ++i) now_[i] = static_cast<uint32_t>(5000 + i);
    write_changes();
  }
  void write_changes() {
    const StateWriter::Changes changes{kBaseRows, "changed_rows", static_cast<int64_t>(changed_.size()),
                                       [&](int64_t first, int64_t rows, std::byte* to) {
                                         for (int64_t i = 0; i < rows; ++i)
                                           std::memcpy(to + i * kRowBytes,
                                                       row(changed_[static_cast<size_t>(first + i)]), kRowBytes);
                                       }};
    const Manifest::Base base{.name = "iteration_000001", .crc = read_manifest(base_path()).files_crc()};
    write("iteration_000002", base, [&](const StateWriter& own) {
      StateWriter to = own;
      to.list("changed_rows", changed_);
      to.changes("rows", "u32", {kRows, kWidth}, changes, row(kBaseRows));
      to.changes("keys", "u32", {kBaseRows + 2, 1}, {.base_rows = kBaseRows, .list = {}}, now_.data());
    });
  }
  const uint32_t* row(int64_t number) const { return now_.data() + number * kWidth; }
  void write(const std::string& name, const std::optional<Manifest::Base>& base,
             const std::function<void(StateWriter)>& state) {
    fs::create_directories(folder_ / name);
    StateIndex index;
    index.file = "rank_0.state";
    StateFileWriter file(folder_ / name / index.file);
    const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
    StateWriter to(0, runtime_of(kCpu).compute_stream(), index, sink, {});
    if (!base) to.array("keys", "u32", {kBaseRows, 1}, std::vector<uint32_t>(kBaseRows, 7).data());
    state(to);
    file.commit(index);
    write_manifest(folder_ / name, {Json(Json::Object{}), Json(Json::Object{}), {index}, base});
  }
  fs::path base_path() const { return folder_ / "iteration_000001"; }
  fs::path path() const { return folder_ / "iteration_000002"; }
  StateReader reader() const {
    return StateReader(path(), read_manifest(path()), true, 0, runtime_of(kCpu).compute_stream());
  }

  static constexpr int64_t kRowBytes = kWidth * 4;
  TemporaryFolder folder_;
  std::vector<int32_t> changed_ = {0, 7, 8, 19};
  std::vector<uint32_t> now_;
};

TEST_F(SavedChanges, AreReadAsTheWhole) {
  const StateReader from = reader();
  verify_files(path(), read_manifest(path()));
  EXPECT_EQ(base_of(path()), "iteration_000001");
  EXPECT_EQ(base_of(base_path()), std::nullopt);
  std::vector<uint32_t> rows(now_.size());
  from.array("rows", "u32", {kRows, kWidth}, rows.data());
  EXPECT_EQ(rows, now_);
  // Reads any range of the data, including partial rows.
  const auto whole = std::as_bytes(std::span(now_));
  for (size_t first = 0; first <= whole.size(); first += 5)
    for (const size_t bytes : {size_t{1}, size_t{7}, size_t{12}, size_t{50}, whole.size()}) {
      std::vector<std::byte> part(std::min(bytes, whole.size() - first));
      from.read(from.at("rows"), static_cast<int64_t>(first), part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first))) << first;
    }
  std::vector<uint32_t> keys(kBaseRows + 2);
  from.array("keys", "u32", {kBaseRows + 2, 1}, keys.data());
  EXPECT_EQ(keys[kBaseRows - 1], 7u);
  EXPECT_EQ(keys[kBaseRows + 1], now_[1]);
  EXPECT_EQ(fs::file_size(path() / "rank_0.state"),
            changed_.size() * 4 + (changed_.size() + kRows - kBaseRows) * kRowBytes + 2 * 4);
}

TEST_F(SavedChanges, AreNeverReadWhenAByteOfEitherPartIsChangedOrMissing) {
  const auto load = [&] { verify_files(path(), read_manifest(path())); };
  load();
  for (const fs::path& of : {path(), base_path()})
    for (const char* name : {"manifest.json", "rank_0.state"}) {
      const std::string whole = read_file(of / name);
      for (size_t at = 0; at < whole.size(); ++at) {
        std::string other = whole;
        other[at] = static_cast<char>(other[at] ^ 4);
        write_file(of / name, other);
        EXPECT_NE(message_of(Kind::data, load).find((of / name).string()), std::string::npos) << "byte " << at;
        write_file(of / name, whole.substr(0, at));
        EXPECT_NE(message_of(Kind::data, load).find((of / name).string()), std::string::npos) << "cut at " << at;
      }
      write_file(of / name, whole);
    }
  load();
  fs::remove_all(base_path());
  EXPECT_NE(message_of(Kind::io, load).find(base_path().string()), std::string::npos);
}

TEST_F(SavedChanges, NeedTheirOwnBase) {
  const auto load = [&] { read_manifest(path()); };
  std::vector<uint32_t> other(kBaseRows * kWidth, 3);
  write("iteration_000001", {}, [&](StateWriter to) { to.array("rows", "u32", {kBaseRows, kWidth}, other.data()); });
  EXPECT_NE(message_of(Kind::data, load).find("is not the checkpoint that '"), std::string::npos);
  write("iteration_000001", {},
        [&](StateWriter to) { to.array("rows", "u32", {kBaseRows - 1, kWidth}, other.data()); });
  write_changes();
  EXPECT_NE(message_of(Kind::data, load).find("the first 20 rows of 'rows' must come from '"), std::string::npos);
  Manifest manifest = read_manifest(base_path());
  manifest.files[0].arrays[0].from_base = {1, "", 0};
  write_manifest(base_path(), manifest);
  EXPECT_NE(message_of(Kind::data, [&] { read_manifest(base_path()); }).find("the manifest names no base"),
            std::string::npos);
  for (const char* name : {"../x", "", ".hidden", "a/b"}) {
    write_manifest(path(), {{}, {}, manifest.files, Manifest::Base{.name = name}});
    EXPECT_NE(message_of(Kind::data, load).find("expected the name of a folder next to this checkpoint"),
              std::string::npos)
        << name;
  }
}

TEST_F(SavedChanges, OfRowsOutOfOrderAreRefused) {
  for (const std::vector<int32_t>& changed : {std::vector<int32_t>{3, 3}, std::vector<int32_t>{5, 4},
                                              std::vector<int32_t>{-1, 4}, std::vector<int32_t>{20}}) {
    const Manifest::Base base{.name = "iteration_000001", .crc = read_manifest(base_path()).files_crc()};
    write("iteration_000002", base, [&](StateWriter to) {
      to.list("changed_rows", changed);
      to.changes("rows", "u32", {kRows, kWidth},
                 {kBaseRows, "changed_rows", static_cast<int64_t>(changed.size()),
                  [&](int64_t, int64_t rows, std::byte* host) {
                    std::memset(host, 0, static_cast<size_t>(rows * kRowBytes));
                  }},
                 row(kBaseRows));
    });
    std::vector<uint32_t> rows(now_.size());
    const StateReader from = reader();
    EXPECT_NE(
        message_of(Kind::data, [&] { from.array("rows", "u32", {kRows, kWidth}, rows.data()); }).find("'changed_rows'"),
        std::string::npos);
  }
}

TEST(StateIndex, RefusesArraysOutsideOfTheirFile) {
  const auto read = [](const std::string& array) {
    state_index(Json::parse(
        R"({"file": "rank_0.state", "bytes": 40, "crc32": "0a", "values": {}, "arrays": [)" + array + "]}", "test"));
  };
  read(R"({"name": "a", "type": "f32", "shape": [2, 5], "offset": 0})");
  const std::string list = R"({"name": "l", "type": "i32", "shape": [2], "offset": 0}, )";
  read(list + R"({"name": "a", "type": "f32", "of_base": {"shape": [9, 2], "rows": 7, "changed": "l"}, "offset": 8})");
  for (const char* array :
       {R"({"name": "a", "type": "f32", "of_base": {"shape": [9, 2], "rows": 7, "changed": "l"}, "offset": 9})",
        R"({"name": "a", "type": "f32", "of_base": {"shape": [9, 2], "rows": 10, "changed": "l"}, "offset": 8})",
        R"({"name": "a", "type": "f32", "of_base": {"shape": [9, 2], "rows": 7, "changed": "a"}, "offset": 8})",
        R"({"name": "a", "type": "f32", "of_base": {"shape": [9, 2], "rows": 7, "changed": "x"}, "offset": 8})",
        R"({"name": "a", "type": "f32", "of_base": {"shape": [9, 2], "rows": 1, "changed": "l"}, "offset": 8})",
        R"({"name": "a", "type": "f32", "of_base": {"shape": [], "rows": 0, "changed": ""}, "offset": 8})",
        R"({"name": "a", "type": "f32", "of_base": {"rows": 0, "changed": ""}, "offset": 8})"})
    EXPECT_NE(message_of(Kind::data, [&] { read(list + array); }), "") << array;
  for (const char* array : {R"({"name": "a", "type": "f32", "shape": [2, 5], "offset": 4})",
                            R"({"name": "a", "type": "f32", "shape": [4611686018427387904, 4], "offset": 0})",
                            R"({"name": "a", "type": "f32", "shape": [-1], "offset": 0})",
                            R"({"name": "a", "type": "f99", "shape": [1], "offset": 0})",
                            R"({"name": "a", "type": "f32", "shape": 1, "offset": 0})"})
    EXPECT_NE(message_of(Kind::data, [&] { read(array); }), "") << array;
  EXPECT_NE(message_of(Kind::data,
                       [] {
                         state_index(Json::parse(
                             R"({"file": "../x", "bytes": 0, "crc32": "0", "values": {}, "arrays": []})", "test"));
                       }),
            "");
}

TEST(Checksum, ContinuesOverPieces) {
  const std::string text = "123456789";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(crc_text(crc32_of(bytes)), "cbf43926") << "the check value of CRC-32";
  EXPECT_EQ(crc32_of(bytes.subspan(4), crc32_of(bytes.first(4))), crc32_of(bytes));
}

}  // namespace
}  // namespace hctr::test
