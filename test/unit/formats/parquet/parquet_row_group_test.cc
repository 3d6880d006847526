// Many threads read a row group. Each thread gets the values of its pieces, whichever thread decoded them. No thread
// waits while pieces remain to be decoded, and no thread hangs.
#include "formats/parquet/parquet_row_group.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "core/base/random.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::data_test {
namespace {

/// A file with one row group, without Arrow. A piece of a column contains one number, 1000 * column + piece. Records
/// the decoded pieces.
class FakeFile : public ParquetFile {
 public:
  FakeFile(size_t columns, int64_t pieces)
      : fields_(columns, {"c", ParquetType::i64, false, "int64"}),
        group_{pieces * kParquetPieceRows, 1},
        decoded_(columns) {
    info_ = {.rows = group_.rows,
             .field_count = static_cast<int64_t>(columns),
             .group_count = 1,
             .fields = fields_.data(),
             .groups = &group_};
  }
  const ParquetFileInfo& info() const override { return info_; }
  const char* open_column(int64_t, int64_t field, ParquetForm, ParquetColumn*& column) override {
    column = new FakeColumn(*this, field);
    return nullptr;
  }
  bool may_be_negative(int64_t) const override { return false; }
  /// The number of decoded pieces of a column.
  int64_t decoded(size_t column) const { return decoded_[column]; }
  int64_t decoded() const { return std::accumulate(decoded_.begin(), decoded_.end(), int64_t{0}); }

  std::function<const char*(int64_t column, int64_t piece)> on_read = [](int64_t, int64_t) { return nullptr; };

 private:
  class FakeColumn : public ParquetColumn {
   public:
    FakeColumn(FakeFile& file, int64_t column) : file_(file), column_(column) {}
    const char* read(ParquetValues& values, void*&) override {
      EXPECT_FALSE(busy_.exchange(true)) << "two threads decode column " << column_;
      if (const char* problem = file_.on_read(column_, piece_)) return problem;
      numbers_[static_cast<size_t>(piece_)] = 1000 * column_ + piece_;
      values.rows = kParquetPieceRows;
      values.values = &numbers_[static_cast<size_t>(piece_++)];
      ++file_.decoded_[static_cast<size_t>(column_)];
      busy_ = false;
      return nullptr;
    }

   private:
    FakeFile& file_;
    int64_t column_, piece_ = 0;
    std::array<int64_t, 64> numbers_{};
    std::atomic<bool> busy_ = false;
  };

  std::vector<ParquetField> fields_;
  ParquetGroup group_;
  ParquetFileInfo info_;
  std::vector<std::atomic<int64_t>> decoded_;
};

std::vector<ParquetRead> all_of(size_t columns) {
  std::vector<ParquetRead> all;
  for (size_t c = 0; c < columns; ++c) all.push_back({static_cast<int64_t>(c)});
  return all;
}

/// Distributes the pieces [first, pieces) to threads in order, as the reader does.
void on_threads(int threads, int64_t first, int64_t pieces, const std::function<void(int64_t piece)>& body) {
  std::atomic<int64_t> next = first;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&] {
      for (int64_t piece; (piece = next++) < pieces;) body(piece);
    });
  for (std::thread& thread : running) thread.join();
}

/// Reads the columns of a piece and checks their values. Sometimes yields to another thread.
void expect_piece(ParquetRowGroup& group, size_t columns, int64_t piece) {
  for (size_t c = 0; c < columns; ++c) {
    const ParquetPiece values = group.read(c, piece);
    EXPECT_EQ(*static_cast<const int64_t*>(values.values.values), 1000 * static_cast<int64_t>(c) + piece);
    if (mix64(1000 * c + static_cast<uint64_t>(piece)) % 3 == 0) std::this_thread::yield();
  }
}

/// Slows down decoding, so that threads contend.
const char* slowly(int64_t, int64_t) {
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  return nullptr;
}

struct ParquetRowGroupTest : ::testing::Test {
  void SetUp() override { HCTR_SKIP_WITHOUT_PARQUET(); }
};

TEST_F(ParquetRowGroupTest, EachThreadGetsItsPiecesWhoeverDecodesThem) {
  constexpr int64_t kPieces = 50;
  for (const size_t columns : {1u, 2u, 40u})
    for (const int threads : {1, 2, 16})
      for (const int64_t first : {0, 7}) {
        const auto file = std::make_shared<FakeFile>(columns, kPieces);
        ParquetRowGroup group(file, "fake", 0, all_of(columns), first);
        on_threads(threads, first, kPieces, [&](int64_t piece) { expect_piece(group, columns, piece); });
        EXPECT_EQ(file->decoded(), static_cast<int64_t>(columns) * kPieces) << "decoded once each, those in front too";
      }
}

TEST_F(ParquetRowGroupTest, ALongTaskHoldsNobodyUpWhileThereAreOthers) {
  constexpr size_t kColumns = 8;
  constexpr int64_t kPieces = 4;
  const auto file = std::make_shared<FakeFile>(kColumns, kPieces);
  constexpr int64_t kOthers = (kColumns - 1) * kPieces;
  std::atomic<int64_t> decoded_meanwhile = -1;
  file->on_read = [&](int64_t column, int64_t piece) -> const char* {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    if (column == 0 && piece == 0) {  // this piece takes as long as all other work
      while (file->decoded() < kOthers && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      decoded_meanwhile = file->decoded();
    }
    return nullptr;
  };
  ParquetRowGroup group(file, "fake", 0, all_of(kColumns), 0);
  on_threads(kPieces, 0, kPieces, [&](int64_t piece) { expect_piece(group, kColumns, piece); });
  EXPECT_EQ(decoded_meanwhile, kOthers);
}

TEST_F(ParquetRowGroupTest, PiecesThatNobodyWantsAreDecodedOnlyForThoseBehindThem) {
  constexpr size_t kColumns = 5;
  constexpr int64_t kPieces = 40;
  for (const int threads : {1, 16})
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const auto wanted = [&](int64_t piece) {
        return mix64(seed * 100 + static_cast<uint64_t>(piece)) % 3 != 0 && piece < 33;
      };
      int64_t last = -1;
      for (int64_t piece = 0; piece < kPieces; ++piece)
        if (wanted(piece)) last = piece;
      const auto file = std::make_shared<FakeFile>(kColumns, kPieces);
      file->on_read = slowly;
      ParquetRowGroup group(file, "fake", 0, all_of(kColumns), 0);
      on_threads(threads, 0, kPieces,
                 [&](int64_t piece) { wanted(piece) ? expect_piece(group, kColumns, piece) : group.skip(piece); });
      for (size_t c = 0; c < kColumns; ++c) EXPECT_EQ(file->decoded(c), last + 1);
    }
}

TEST_F(ParquetRowGroupTest, AfterAFailureThoseBeforeGoOnAndThoseBehindFail) {
  constexpr int64_t kPieces = 40;
  for (const size_t columns : {2u, 9u})
    for (int64_t bad = 0; bad < kPieces; bad += 3) {
      const auto file = std::make_shared<FakeFile>(columns, kPieces);
      file->on_read = slowly;
      ParquetRowGroup group(file, "fake", 0, all_of(columns), 0);
      std::atomic<int64_t> whole = 0;
      on_threads(16, 0, kPieces, [&](int64_t piece) {
        if (piece == bad) {
          group.read(0, piece);
          return group.fail(piece);
        }
        const std::string message = message_of([&] { expect_piece(group, columns, piece); });
        if (message.empty())
          ++whole;
        else {
          EXPECT_GT(piece, bad);
          EXPECT_SAYS(message, "'fake': row group 1: earlier rows could not be read");
          group.fail(piece);
        }
      });
      EXPECT_GE(whole, bad);
    }
}

TEST_F(ParquetRowGroupTest, WhatCannotBeDecodedIsNamedByThePieceThatMeetsIt) {
  constexpr size_t kColumns = 9;
  constexpr int64_t kPieces = 20;
  for (int64_t bad = 0; bad < kPieces; bad += 3)
    // If `skipped`, the thread of piece `bad` skips it without reading, so the next piece meets the error.
    for (const bool skipped : {false, true}) {
      const auto file = std::make_shared<FakeFile>(kColumns, kPieces);
      file->on_read = [&](int64_t column, int64_t piece) {
        return column == 4 && piece == bad ? "torn" : slowly(column, piece);
      };
      ParquetRowGroup group(file, "fake", 0, all_of(kColumns), 0);
      std::vector<std::string> messages(kPieces);
      on_threads(16, 0, kPieces, [&](int64_t piece) {
        if (skipped && piece == bad) return group.skip(piece);
        messages[static_cast<size_t>(piece)] = message_of([&] { expect_piece(group, kColumns, piece); });
        if (!messages[static_cast<size_t>(piece)].empty()) group.fail(piece);
      });
      const int64_t meets = bad + skipped;
      for (int64_t piece = 0; piece < kPieces; ++piece)
        EXPECT_EQ(messages[static_cast<size_t>(piece)].empty(), piece < bad || (skipped && piece == bad)) << piece;
      if (meets == kPieces) continue;
      EXPECT_SAYS(messages[static_cast<size_t>(meets)],
                  cat("'fake': row group 1 of 1, column 'c' (int64) cannot be read from its row ",
                      bad * kParquetPieceRows + 1, " on: torn"));
    }
}

TEST_F(ParquetRowGroupTest, ColumnsOfAFileComeRightThroughManyThreadsOneOfThemTwice) {
  const Folder folder;
  const fs::path path = folder / "rows.parquet";
  constexpr int64_t kGroupRows = 6 * kParquetPieceRows + 100;
  std::vector<int64_t> many(kGroupRows), few(kGroupRows);
  std::vector<std::vector<int64_t>> bags(kGroupRows);
  for (size_t i = 0; i < kGroupRows; ++i) {
    many[i] = static_cast<int64_t>(mix64(i) >> 1);
    few[i] = static_cast<int64_t>(mix64(i) % 1000);  // few distinct values are dictionary-encoded
    bags[i].assign(i % 4, few[i]);
  }
  write_parquet(path,
                {numbers("many", ParquetType::i64, many), numbers("few", ParquetType::i64, few),
                 lists("bags", ParquetType::i64, bags)},
                kGroupRows / 2);
  const auto file = open_parquet(path);
  for (const int64_t first : {0, 2})
    for (int64_t at = 0; at < 2; ++at) {
      const int64_t rows = kGroupRows / 2, before = at * rows;
      ParquetRowGroup group(file, path, at, {{2}, {1}, {0}, {1}}, first);
      on_threads(16, first, (rows + kParquetPieceRows - 1) / kParquetPieceRows, [&](int64_t piece) {
        const int64_t row = before + piece * kParquetPieceRows,
                      count = std::min(kParquetPieceRows, before + rows - row);
        for (size_t c = 0; c < 4; ++c) {
          const ParquetPiece read = group.read(c, piece);
          const auto* values = static_cast<const int64_t*>(read.values.values);
          ASSERT_EQ(read.values.rows, count);
          int64_t wrong = 0;
          for (int64_t r = 0; r < count; ++r) {
            const auto i = static_cast<size_t>(row + r);
            if (c == 0)
              wrong += read.values.list[r + 1] - read.values.list[r] != static_cast<int64_t>(i % 4) ||
                       (i % 4 > 0 && values[read.values.list[r]] != few[i]);
            else
              wrong += values[r] != (c == 2 ? many[i] : few[i]);
          }
          EXPECT_EQ(wrong, 0) << "column " << c << ", piece " << piece;
        }
      });
    }
}

}  // namespace
}  // namespace hctr::data_test
