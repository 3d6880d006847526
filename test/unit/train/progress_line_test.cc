#include "train/progress_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hctr::test {
namespace {

TEST(ProgressLine, SaysWhatIsKnown) {
  DisplayFigures at{.iteration = 200,
                    .epoch = 1.25,
                    .mean_loss = 0.456789,
                    .learning_rate = 0.001,
                    .samples_per_second = 12.34e6,
                    .reader_wait = 0.024,
                    .gpu_memory = 12'340'000'000,
                    .host_memory = 2'100'000'000,
                    .seconds_left = 185};
  EXPECT_EQ(progress_line(at),
            "Iter: 200 epoch 1.25 loss 0.456789 lr 0.001 | 12.3 M samples/s, wait 2 %, mem 12.3+2.10 GB, 3 min 05 s "
            "left");
  at.epoch.reset();
  at.gpu_memory.reset();
  EXPECT_EQ(progress_line(at),
            "Iter: 200 loss 0.456789 lr 0.001 | 12.3 M samples/s, wait 2 %, mem 2.10 GB, 3 min 05 s left");
  at.reads_from_gpu = 0.9314;
  EXPECT_EQ(
      progress_line(at),
      "Iter: 200 loss 0.456789 lr 0.001 | 12.3 M samples/s, wait 2 %, rows 93.1 % from GPU, mem 2.10 GB, 3 min 05 s "
      "left");
}

TEST(ProgressLine, SaysWhatComesFromTheDisk) {
  EXPECT_EQ(
      progress_line({.iteration = 200,
                     .epoch = {},
                     .mean_loss = 0.456789,
                     .learning_rate = 0.001,
                     .samples_per_second = 1e4,
                     .reader_wait = 0.02,
                     .gpu_memory = {},
                     .host_memory = {},
                     .rows_from_disk = 0.0131,
                     .disk_wait = 0.123,
                     .seconds_left = 185}),
      "Iter: 200 loss 0.456789 lr 0.001 | 10.0 k samples/s, wait 2 %, rows 1.3 % from disk, wait 12 %, 3 min 05 s "
      "left");
}

TEST(ProgressLine, FitsATerminalWhateverTheNumbers) {
  const double numbers[] = {0, 1e-300, 0.000012345678, 123456.789, 1e300, std::nan(""), -1e12};
  for (const int64_t count : {int64_t{1}, int64_t{123456789}, std::numeric_limits<int64_t>::max()})
    for (const double number : numbers) {
      const std::string line = progress_line({.iteration = count,
                                              .epoch = std::abs(number) < 1e9 ? number : 12345.0,
                                              .mean_loss = number,
                                              .learning_rate = number,
                                              .samples_per_second = std::abs(number) < 1e15 ? number : 1e12,
                                              .reader_wait = 1,
                                              .gpu_memory = count,
                                              .host_memory = count,
                                              .reads_from_gpu = 1,
                                              .rows_from_disk = 1,
                                              .seconds_left = std::abs(number) < 1e9 ? number : 1e9});
      EXPECT_LE(line.size(), kProgressColumns) << line;
      EXPECT_TRUE(line.starts_with("Iter: ") && line.ends_with(" left")) << line;
    }
}

}  // namespace
}  // namespace hctr::test
