// Records of rows: each part of a record equals the row of its array, for parts of every width and alignment, in both
// directions.
#include "ops/embedding/row_records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr int64_t kRecordRows = 500;

/// Arrays with rows of these widths. A record contains the row of each array contiguously, then `gap` unused bytes.
class RecordRig {
 public:
  RecordRig(Device device, std::vector<int64_t> widths, int64_t gap)
      : ctx_(runtime_of(device), runtime_of(device).compute_stream()) {
    std::mt19937_64 random(9);
    int64_t at = 0;
    for (const int64_t width : widths) {
      std::vector<std::byte>& values = plain_.emplace_back(static_cast<size_t>((kRecordRows + 1) * width));
      for (std::byte& value : values) value = static_cast<std::byte>(random());
      columns_.emplace_back(device, values.size());
      widths_.push_back(width);
      offsets_.push_back(at);
      at += width;
    }
    stride_ = at + gap;
    records_ = Buffer(device, static_cast<size_t>(kRecordRows * stride_));
    reset_columns();
    for (size_t c = 0; c < widths_.size(); ++c)
      parts_.add({columns_[c].data(), records_.data() + offsets_[c], widths_[c], stride_});
  }

  void gather(const std::vector<int32_t>& rows) {
    const Buffer list(ctx_.device(), rows.size() * sizeof(int32_t));
    copy_bytes(ctx_.stream(), list.data(), rows.data(), list.bytes());
    ops::gather_records(ctx_, parts_, reinterpret_cast<const int32_t*>(list.data()), static_cast<int64_t>(rows.size()));
    ctx_.stream().synchronize();
  }
  void scatter(const std::vector<int32_t>& rows) {
    const Buffer list(ctx_.device(), std::max<size_t>(1, rows.size() * sizeof(int32_t)));
    copy_bytes(ctx_.stream(), list.data(), rows.data(), rows.size() * sizeof(int32_t));
    ops::scatter_records(ctx_, parts_, reinterpret_cast<const int32_t*>(list.data()),
                         static_cast<int64_t>(rows.size()));
    ctx_.stream().synchronize();
  }
  void reset_columns() {
    for (size_t c = 0; c < columns_.size(); ++c)
      copy_bytes(ctx_.stream(), columns_[c].data(), plain_[c].data(), plain_[c].size());
    ctx_.stream().synchronize();
  }
  std::vector<std::byte> read(const Buffer& buffer) {
    std::vector<std::byte> values(buffer.bytes());
    copy_bytes(ctx_.stream(), values.data(), buffer.data(), values.size());
    ctx_.stream().synchronize();
    return values;
  }
  /// Expects that record i contains row rows[i], and zeros in its gap. All bytes after the last record are zero.
  void expect_records(const std::vector<int32_t>& rows) {
    std::vector<std::byte> expected(records_.bytes());
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t c = 0; c < widths_.size(); ++c)
        std::copy_n(plain_[c].begin() + rows[i] * widths_[c], widths_[c],
                    expected.begin() + static_cast<int64_t>(i) * stride_ + offsets_[c]);
    EXPECT_TRUE(read(records_) == expected);
  }
  /// Expects that rows to[i] equal the previous rows[i], and that all other rows are unchanged.
  void expect_columns(const std::vector<int32_t>& rows, const std::vector<int32_t>& to) {
    for (size_t c = 0; c < widths_.size(); ++c) {
      std::vector<std::byte> expected = plain_[c];
      for (size_t i = 0; i < rows.size(); ++i)
        std::copy_n(plain_[c].begin() + rows[i] * widths_[c], widths_[c], expected.begin() + to[i] * widths_[c]);
      EXPECT_TRUE(read(columns_[c]) == expected) << "rows of " << widths_[c] << " bytes";
    }
  }

 private:
  Context ctx_;
  std::vector<int64_t> widths_, offsets_;
  std::vector<std::vector<std::byte>> plain_;
  std::vector<Buffer> columns_;
  Buffer records_;
  int64_t stride_ = 0;
  ops::RecordParts parts_;
};

TEST(RowRecordsTest, RecordsHaveTheRowsOfEveryArrayAndGiveThemBack) {
  for (const Device device : devices())
    for (const auto& [widths, gap] : std::vector<std::pair<std::vector<int64_t>, int64_t>>{
             {{1024, 1024, 1024, 8, 4, 4}, 20}, {{6, 6, 12, 1, 8}, 0}, {{2}, 1}, {{16, 4, 3, 48}, 7}, {{1}, 0}}) {
      SCOPED_TRACE(cat(to_string(device), ": ", widths.size(), " arrays, the first of ", widths[0], " bytes a row"));
      RecordRig rig(device, widths, gap);
      std::vector<int32_t> rows(333);
      std::mt19937_64 random(4);
      for (int32_t& row : rows) row = static_cast<int32_t>(random() % (kRecordRows + 1));
      rig.gather(rows);
      rig.expect_records(rows);
      std::vector<int32_t> places(kRecordRows);
      std::iota(places.begin(), places.end(), 1);
      std::shuffle(places.begin(), places.end(), random);
      places.resize(rows.size());
      rig.scatter(places);
      rig.expect_columns(rows, places);
      rig.reset_columns();
      rig.scatter({});
      rig.expect_columns({}, {});
    }
}

}  // namespace
}  // namespace hctr::test
