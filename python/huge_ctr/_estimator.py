"""The common base of the scikit-learn estimators."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d

from . import presets
from .columns import Columns, _reader
from .training import train

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn is older than 1.6

    def validate_data(estimator: Any, X: Any, reset: bool = True, **options: Any) -> Any:  # type: ignore[misc]
        options["force_all_finite"] = options.pop("ensure_all_finite", True)
        return estimator._validate_data(X, reset=reset, **options)


_LABEL, _WEIGHT = "(label)", "(weight)"
_KEPT_FOR_IMPORTANCE = 10_000  # number of rows


class CTREstimator(BaseEstimator):
    def __init__(
        self,
        preset: str = "wide_and_deep",
        *,
        embedding_dim: int = 16,
        hidden: Sequence[int] = (128, 64),
        dropout: float = 0.3,
        learning_rate: Optional[float] = None,
        batch_size: Optional[int] = None,
        epochs: Optional[int] = None,
        early_stopping_rounds: Optional[int] = 3,
        categorical_feature: Union[str, Sequence[Any]] = "auto",
        random_state: Any = None,
        device: str = "auto",
        threads: Optional[int] = None,
        config: Optional[Mapping[str, Any]] = None,
        verbose: bool = False,
    ):
        self.preset = preset
        self.embedding_dim = embedding_dim
        self.hidden = hidden
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.early_stopping_rounds = early_stopping_rounds
        self.categorical_feature = categorical_feature
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.config = config
        self.verbose = verbose

    # ---- Methods that scikit-learn requires ----

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _more_tags(self) -> dict:  # only scikit-learn before 1.6 calls this
        return {"allow_nan": True, "binary_only": True, "non_deterministic": False}

    # ---- Fitting ----

    _metric = "AUC"

    def _fit(
        self,
        table: dict,
        y: np.ndarray,
        eval_set: Any,
        sample_weight: Any,
        categorical_feature: Any,
        callbacks: Sequence[Any],
    ) -> "CTREstimator":
        stated = self.categorical_feature if categorical_feature is None else categorical_feature
        options = self._stated(stated, list(table))
        table[_LABEL] = y
        if sample_weight is not None:
            weights = column_or_1d(np.asarray(sample_weight, np.float64))
            if len(weights) != len(y):
                raise ValueError(f"sample_weight has {len(weights)} values, but y has {len(y)}")
            if not weights.any():
                raise ValueError("every sample_weight is zero: there is nothing to learn from")
            table[_WEIGHT] = weights
        columns = Columns.of(table, _LABEL, weight=_WEIGHT if sample_weight is not None else None, **options)
        held_out = self._eval_table(eval_set)
        sizes = presets.Sizes(
            embedding_dim=self.embedding_dim,
            hidden=tuple(self.hidden),
            dropout=self.dropout,
            batch_size=self.batch_size,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            early_stopping=self.early_stopping_rounds if held_out is not None else None,
            metric=self._metric,
            seed=self._seed(),
        )
        config = presets.build(self.preset, columns, sizes).to_json()
        for path, value in (self.config or {}).items():
            _set(config, path, value)
        if held_out is None:
            config["solver"].pop("eval_interval", None)
        self.model_ = train(
            config,
            table,
            held_out,
            callbacks=callbacks,
            progress=self.verbose,
            device=self.device,
            threads=self.threads,
            allow_unmatched=True,
        )
        self.columns_ = columns
        self.evals_result_ = [dict(state.metrics) for state in self.model_.history.evaluations]
        self.n_iter_ = max(1, int(self.model_.iteration))
        kept = held_out if held_out is not None else table
        self._kept_ = {name: values[:_KEPT_FOR_IMPORTANCE] for name, values in kept.items()}
        self.__dict__.pop("_importances_", None)
        return self

    def _stated(self, categorical: Any, names: Sequence[str]) -> dict:
        if isinstance(categorical, str):
            if categorical != "auto":
                raise ValueError(
                    f'categorical_feature is {categorical!r}, expected "auto" or a list of names or indices'
                )
            return {}
        found = []
        for one in categorical:
            name = names[int(one)] if isinstance(one, (int, np.integer)) and not isinstance(one, bool) else str(one)
            if name not in names:
                raise ValueError(f"categorical_feature names '{name}', but the columns of X are {', '.join(names)}")
            found.append(name)
        return {"categorical": found}

    def _seed(self) -> int:
        if self.random_state is None:
            return 1
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(self.random_state.randint(0, 2**31 - 1))

    def _table_and_target(self, X: Any, y: Any) -> tuple[dict, np.ndarray]:
        """The columns of X by name, and y as an array [rows]."""
        table = self._table(X, reset=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = column_or_1d(np.asarray(y), warn=True)
        shape = getattr(X, "shape", ())
        if len(shape) == 2 and shape[0] != len(y):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[shape[0], len(y)]}")
        return table, y

    def _table(self, X: Any, reset: bool) -> dict:
        """The columns of X by name. Frames keep their types; arrays are checked by scikit-learn's rules."""
        if (isinstance(X, Mapping) and not hasattr(X, "nnz")) or hasattr(X, "get_column") or hasattr(X, "column_names"):
            names, _, _ = _reader(X)
            if reset:
                self.feature_names_in_, self.n_features_in_ = np.array(names, object), len(names)
            return {name: X[name] for name in names}
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True) if _takes_skip() else self._check_names(X, reset)
            if len(X) == 0 or len(X.columns) == 0:
                raise ValueError(f"X has {len(X)} samples and {len(X.columns)} features: at least 1 of each is needed")
            return {str(name): X[name] for name in X.columns}
        X = validate_data(
            self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=2 if reset else 1
        )
        if X.dtype.kind == "f" and np.isinf(X).any():
            raise ValueError("X contains infinity; missing values are NaN")
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        return {f"x{i}": _column_of_array(X[:, i]) for i in range(X.shape[1])}

    def _check_names(self, X: Any, reset: bool) -> None:
        self._check_feature_names(X, reset=reset)
        self._check_n_features(X, reset=reset)

    def _eval_table(self, eval_set: Any) -> Optional[dict]:
        if eval_set is None or len(eval_set) == 0:
            return None
        pair = eval_set if isinstance(eval_set, tuple) and len(eval_set) == 2 else eval_set[-1]
        X, y = pair
        table = self._table(X, reset=False)
        table[_LABEL] = self._labels(y)
        return table

    def _labels(self, y: Any) -> np.ndarray:
        raise NotImplementedError

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.predict(self._table(X, reset=False)), np.float64)

    @property
    def feature_importances_(self) -> np.ndarray:
        """The importance of each column of X: how much a permutation of the column's values decreases the AUC
        (CTRClassifier) or changes the scores (CTRRegressor). The importances of all columns add up to 1.
        """
        check_is_fitted(self, "model_")
        if "_importances_" not in self.__dict__:
            self._importances_ = self._importances()
        return self._importances_

    def _importances(self) -> np.ndarray:
        names = [name for name in self._names()]
        found = self.model_.feature_importance(self._kept_, by=self._importance_by)
        values = np.array([max(0.0, sum(v for k, v in found.items() if k in _of_column(name))) for name in names])
        return values / values.sum() if values.sum() > 0 else values

    _importance_by = "AUC"

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{i}" for i in range(self.n_features_in_)]


def _of_column(name: str) -> tuple[str, ...]:
    """The feature names that a preset may give to this column."""
    return name, f"{name} (number)", f"{name} (category)"


def _takes_skip() -> bool:
    import inspect

    return "skip_check_array" in inspect.signature(validate_data).parameters


def _column_of_array(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "O":
        return np.ascontiguousarray(values)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        for one in values:
            if isinstance(one, (dict, set)):
                raise TypeError(f"argument must be a string or a number, but X has {one!r}") from None
        return values


def _set(config: dict, path: str, value: Any) -> None:
    """Sets the field at a path such as solver.display or layers.0.shuffle."""
    at: Any = config
    *folders, name = path.split(".")
    for folder in folders:
        at = at[int(folder)] if isinstance(at, list) else at.setdefault(folder, {})
    at[name] = value
