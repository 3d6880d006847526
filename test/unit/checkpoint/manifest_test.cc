#include "checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "checkpoint/file_checksum.h"
#include "checkpoint/state_reader.h"
#include "checkpoint/state_writer.h"
#include "device/buffer.h"
#include "device/copy.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/program.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class SavedState : public testing::Test {
 protected:
  /// Writes a checkpoint of two arrays and a number.
  void write(Device device = kCpu) {
    Runtime& runtime = runtime_of(device);
    StateIndex index;
    index.file = "rank_0.state";
    StateFileWriter file(folder_ / index.file);
    const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
    StateWriter to(0, runtime.compute_stream(), index, sink);
    Buffer memory(device, 6 * sizeof(float));
    const Tensor tensor(memory.data(), TensorSpec(DType::f32, {2, 3}), device);
    from_host(runtime.compute_stream(), tensor, values_);
    to.in("layer").in("fc").tensor("weights", tensor);
    to.in("layer").list("keys", std::vector<int64_t>{-1, 1LL << 40});
    to.number("steps", -5);
    file.commit(index);
    write_manifest(folder_.path(), {Json(Json::Object{{"run", "a"}}), Json(Json::Object{{"loss", 0.5}}), {index}});
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

TEST_F(SavedState, OfAnotherShapeIsAnErrorThatNamesBoth) {
  write();
  std::vector<float> to(6);
  const StateReader from = reader().in("layer").in("fc");
  EXPECT_EQ(message_of(Kind::data, [&] { from.array("weights", "f32", {3, 2}, to.data()); }),
            cat("'", (folder_ / "rank_0.state").string(),
                "', 'layer/fc/weights' is f32 [2,3], and this run needs f32 [3,2]"));
  EXPECT_EQ(message_of(Kind::data, [&] { from.array("bias", "f32", {1}, to.data()); }),
            cat("'", (folder_ / "rank_0.state").string(), "', 'layer/fc/bias': the checkpoint does not hold it"));
  EXPECT_NE(message_of(Kind::data, [&] { from.number("steps"); }).find("does not hold it"), std::string::npos);
}

/// Every byte of both files, changed in two ways; and both files cut at every place.
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

TEST(StateIndex, RefusesArraysOutsideOfTheirFile) {
  const auto read = [](const std::string& array) {
    state_index(Json::parse(
        R"({"file": "rank_0.state", "bytes": 40, "crc32": "0a", "values": {}, "arrays": [)" + array + "]}", "test"));
  };
  read(R"({"name": "a", "type": "f32", "shape": [2, 5], "offset": 0})");
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
