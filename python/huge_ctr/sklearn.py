"""Estimators of scikit-learn: CTRClassifier and CTRRegressor.

from huge_ctr.sklearn import CTRClassifier
model = CTRClassifier().fit(X, y, eval_set=[(X_new, y_new)], categorical_feature=["user", "item"])
model.predict_proba(rows)[:, 1]
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from ._estimator import CTREstimator


class CTRClassifier(ClassifierMixin, CTREstimator):
    """Classifier that predicts the probability of the second of two classes.

    preset: "wide_and_deep", "deepfm", "dcn", "dcnv2" or "dlrm". embedding_dim, hidden, dropout: sizes of the model.
    learning_rate, batch_size, epochs: None derives them from the number of rows. early_stopping_rounds: training ends after
    this many evaluations on eval_set without a better AUC; the best model is kept. categorical_feature: "auto", or
    names or indices; texts, pandas categories and integers with names such as "user_id" are always categories.
    random_state: equal values give equal models; None means 1. config: changes of config fields, such as
    {"solver.display": 10}.

    After fit(): classes_, model_ (huge_ctr.Model), columns_ (the role of each column), evals_result_,
    feature_importances_, n_iter_.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        categorical_feature: Any = None,
        callbacks: Sequence[Any] = (),
    ) -> "CTRClassifier":
        """X: a DataFrame or array [rows, columns]; NaN is a missing value. y: two classes. sample_weight: [rows].

        eval_set: (X, y), or a list whose last pair is used.
        """
        table, y = self._table_and_target(X, y)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}: two are needed to learn from")
        return self._fit(table, self._labels(y), eval_set, sample_weight, categorical_feature, callbacks)

    def _labels(self, y: Any) -> np.ndarray:
        y = column_or_1d(np.asarray(y))
        unknown = set(np.unique(y).tolist()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(f"y of eval_set has {sorted(unknown)}, but y of fit() has only {self.classes_.tolist()}")
        return (y == self.classes_[1]).astype(np.float32)

    def predict_proba(self, X: Any) -> np.ndarray:
        """float64 [rows, 2]: the probability of each class."""
        scores = self._scores(X)
        return np.stack([1 - scores, scores], 1)

    def decision_function(self, X: Any) -> np.ndarray:
        """float64 [rows]: the logit."""
        scores = np.clip(self._scores(X), 1e-7, 1 - 1e-7)
        return np.log(scores / (1 - scores))

    def predict(self, X: Any) -> np.ndarray:
        """[rows]: the class with the higher probability."""
        positive = self._scores(X) > 0.5
        return self.classes_[positive.astype(int)]


class CTRRegressor(RegressorMixin, CTREstimator):
    """Regressor for a bounded target, such as a rate or a price. Predicts the mean of the target, between the smallest
    and the largest target in the training data.

    The engine's losses are cross-entropies, so fit() scales the targets to 0 ... 1 and uses them as soft labels. The
    learned probability is then the mean of the scaled target. Predictions are within the bounds. Arguments and
    attributes: as for CTRClassifier; early stopping uses the loss. target_range_: the bounds.
    """

    _metric = "AverageLoss"
    _importance_by = "scores"

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        categorical_feature: Any = None,
        callbacks: Sequence[Any] = (),
    ) -> "CTRRegressor":
        """X, sample_weight, eval_set: as for CTRClassifier. y: finite numbers [rows]."""
        table, y = self._table_and_target(X, y)
        if y.dtype.kind not in "biuf":
            y = y.astype(np.float64)
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity")
        low, high = (float(y.min()), float(y.max())) if len(y) else (0.0, 1.0)
        self.target_range_ = (low, high if high > low else low + 1)
        return self._fit(table, self._labels(y), eval_set, sample_weight, categorical_feature, callbacks)

    def _labels(self, y: Any) -> np.ndarray:
        low, high = self.target_range_
        return np.clip((np.asarray(y, np.float64) - low) / (high - low), 0, 1).astype(np.float32)

    def predict(self, X: Any) -> np.ndarray:
        """float64 [rows]."""
        low, high = self.target_range_ if hasattr(self, "target_range_") else (0.0, 1.0)
        return low + self._scores(X) * (high - low)
