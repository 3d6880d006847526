// Measures of predictions against labels, on the host. All take one score (and where said one group) per label, are exact up
// to the rounding of double, and are NaN where they are not defined; a score that is NaN makes them NaN.
#pragma once

#include <cstdint>
#include <span>

namespace hctr {

/// Mean of -(y log p + (1 - y) log(1 - p)); p is kept 1e-15 away from 0 and 1. NaN without labels.
double log_loss(std::span<const float> probabilities, std::span<const float> labels);

/// log_loss over that of always predicting the mean label: below 1 something was learned. NaN when all labels are equal.
/// Source: X. He et al., "Practical Lessons from Predicting Clicks on Ads at Facebook", ADKDD 2014, equation 3.
double normalized_entropy(std::span<const float> probabilities, std::span<const float> labels);

/// Sum of probabilities over sum of labels: 1 when as many clicks come as were predicted. NaN without a positive label.
/// Source: the same, section 2.
double calibration(std::span<const float> probabilities, std::span<const float> labels);

/// The mean of the areas under the ROC curve of each group (a user, say), weighted by its number of labels; groups with labels
/// of one kind alone are left out. NaN when that leaves none. Cost: a sort.
/// Source: H. Zhu et al., "Optimized Cost per Click in Taobao Display Advertising", KDD 2017, equation 8.
double grouped_auc(std::span<const float> scores, std::span<const float> labels, std::span<const int64_t> groups);

/// The share of positive labels (above 0.5) among those whose score is above `threshold`. NaN when there is none.
double hit_rate(std::span<const float> scores, std::span<const float> labels, double threshold = 0.8);

/// Sum of label / log2(rank + 1) in the order of falling scores, over the same in the order of falling labels. Equal scores
/// share their ranks: each label counts with the mean of the discounts. NaN when the labels' best order gives 0. Cost: two sorts.
/// Source: K. Järvelin and J. Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", TOIS 20 (2002).
double ndcg(std::span<const float> scores, std::span<const float> labels);

/// Mean of |p - y| / ((|p| + |y|) / 2), from 0 to 2; where both are 0 it is 0. NaN without labels.
double smape(std::span<const float> predictions, std::span<const float> labels);

}  // namespace hctr
