#include "report/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hctr::test {
namespace {

Series noise(size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<double> value;
  Series series;
  for (size_t i = 0; i < count; ++i) series.push_back({static_cast<double>(i), value(random)});
  return series;
}

TEST(Downsample, KeepsEndsAndTheExtremesOfEveryPiece) {
  const Series all = noise(10007);
  const Series few = downsample(all, 100);
  EXPECT_LE(few.size(), 202u);
  EXPECT_EQ(few.front(), all.front());
  EXPECT_EQ(few.back(), all.back());
  const auto by_x = [](const Point& a, const Point& b) { return a.x < b.x; };
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end(), by_x));
  for (const Point& point : few) EXPECT_EQ(point, all[static_cast<size_t>(point.x)]) << "a point that was not there";
  // The reduced points include the minimum and maximum of each segment. So in any long range they have nearly the
  // extremes of all points.
  for (size_t begin = 0; begin + 1000 <= all.size(); begin += 1000) {
    const auto high_in = [&](const Series& series) {
      double high = -INFINITY;
      for (const Point& point : series)
        if (point.x >= static_cast<double>(begin) && point.x < static_cast<double>(begin + 1000))
          high = std::max(high, point.y);
      return high;
    };
    EXPECT_EQ(high_in(few), high_in(all)) << begin;
  }
}

TEST(Downsample, ASpikeOfOnePointIsNeverLost) {
  for (size_t place = 0; place < 5000; place += 7) {
    Series flat;
    for (size_t i = 0; i < 5000; ++i) flat.push_back({static_cast<double>(i), i == place ? -3.0 : 1.0});
    const Series few = downsample(flat, 20);
    EXPECT_EQ(std::min_element(few.begin(), few.end(), [](Point a, Point b) { return a.y < b.y; })->y, -3.0) << place;
  }
}

TEST(Downsample, LeavesShortSeriesAsTheyAre) {
  for (const size_t count : {0u, 1u, 2u, 22u}) EXPECT_EQ(downsample(noise(count), 10), noise(count)) << count;
}

TEST(SeriesJson, HasSevenDigits) {
  EXPECT_EQ(to_json(Series{{1, 0.123456789}, {2000000, 3}}).text(), R"({"x":[1.0,2000000.0],"y":[0.1234568,3.0]})");
}

}  // namespace
}  // namespace hctr::test
