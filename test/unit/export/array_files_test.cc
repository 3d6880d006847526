#include "export/array_files.h"

#include <gtest/gtest.h>

#include <cstring>

#include "config/json.h"
#include "support/onnx_reader.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

std::vector<StoredArray> some_arrays() {
  return {stored("fc1/weights", {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6.5f}),
          stored("keys", {3}, std::vector<int64_t>{-5, 0, int64_t{1} << 62}),
          stored("one", {}, std::vector<float>{0.25f}), stored("none", {0, 4}, std::vector<float>{})};
}

TEST(ArrayFiles, NpzHoldsEachArrayWithItsShape) {
  const TemporaryFolder folder;
  FileSet files;
  write_npz(files, folder / "a.npz", some_arrays());
  files.commit();
  const OnnxArrays read = read_npz(folder / "a.npz");
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read.at("fc1/weights").dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read.at("fc1/weights").reals, (std::vector<double>{1, 2, 3, 4, 5, 6.5}));
  EXPECT_EQ(read.at("keys").integers, (std::vector<int64_t>{-5, 0, int64_t{1} << 62}));
  EXPECT_EQ(read.at("one").dims, std::vector<int64_t>());
  EXPECT_EQ(read.at("none").dims, (std::vector<int64_t>{0, 4}));
}

/// Python: reads an archive, verifying every checksum, and parses the headers as literals.
constexpr const char* kReadNpz = R"(
import ast, struct, sys, zipfile
archive = zipfile.ZipFile("a.npz")
assert archive.testzip() is None
for info in archive.infolist():
    data = archive.read(info)
    size = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10:10 + size].decode())
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + size) % 64 == 0 and not head["fortran_order"]
    print(info.filename, head["descr"], head["shape"], len(data) - 10 - size)
)";

TEST(ArrayFiles, NpzIsAnArchiveThatOthersRead) {
  const TemporaryFolder folder;
  FileSet files;
  write_npz(files, folder / "a.npz", some_arrays());
  files.commit();
  write_file(folder / "read.py", kReadNpz);
  const Outcome read = run_program("/usr/bin/env", {"python3", "read.py"}, folder.path());
  EXPECT_EQ(read.out, "fc1/weights.npy <f4 (2, 3) 24\nkeys.npy <i8 (3,) 24\none.npy <f4 () 4\nnone.npy <f4 (0, 4) 0\n")
      << read.err;
}

TEST(ArrayFiles, NamesInNpzAreUtf8) {
  const TemporaryFolder folder;
  FileSet files;
  write_npz(files, folder / "a.npz", {stored("größe/重み", {1}, std::vector<float>{1})});
  files.commit();
  write_file(folder / "read.py", "import zipfile\nprint(ascii(zipfile.ZipFile('a.npz').namelist()))\n");
  const Outcome read = run_program("/usr/bin/env", {"python3", "read.py"}, folder.path());
  EXPECT_EQ(read.out, "['gr\\xf6\\xdfe/\\u91cd\\u307f.npy']\n") << read.err;
}

TEST(ArrayFiles, SafetensorsSaysWhereEachArrayIs) {
  const TemporaryFolder folder;
  FileSet files;
  write_safetensors(files, folder / "a.safetensors", some_arrays(), {{"iteration", "60"}});
  files.commit();
  const std::string bytes = read_file(folder / "a.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  const Json head = Json::parse(bytes.substr(8, length), "head");
  EXPECT_EQ(*head.find("__metadata__")->find("iteration")->string(), "60");
  EXPECT_EQ(head.find("fc1/weights")->text(), R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})");
  EXPECT_EQ(head.find("keys")->text(), R"({"dtype":"I64","shape":[3],"data_offsets":[24,48]})");
  EXPECT_EQ(head.find("one")->text(), R"({"dtype":"F32","shape":[],"data_offsets":[48,52]})");
  EXPECT_EQ(head.find("none")->text(), R"({"dtype":"F32","shape":[0,4],"data_offsets":[52,52]})");
  EXPECT_EQ(bytes.size(), 8 + length + 52);
  int64_t key = 0;
  std::memcpy(&key, bytes.data() + 8 + length + 24, sizeof key);
  EXPECT_EQ(key, -5);
}

}  // namespace
}  // namespace hctr::test
