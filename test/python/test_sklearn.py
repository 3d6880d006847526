"""CTRClassifier and CTRRegressor fulfil scikit-learn's estimator interface."""

import multiprocessing
import pickle
import unittest
import warnings

import numpy as np
import support

sklearn = support.need("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from huge_ctr.sklearn import CTRClassifier, CTRRegressor  # noqa: E402

# A batch has a fixed number of rows. A row of weight 2 counts as one row, a repeated row as two, so results differ.
EXCEPTIONS = {"check_sample_weight_equivalence_on_dense_data": "batches hold rows, whatever these weigh"}


def clicks(count=1200, seed=0):
    """A pandas frame with categories, a number, and a label that follows from both."""
    pandas = support.need("pandas")
    draw = np.random.default_rng(seed)
    users, items, hours = draw.integers(0, 30, count), draw.integers(0, 20, count), draw.normal(12, 4, count)
    liked = (users % 3 - 1) * 1.5 + (items % 4 - 1.5) + 0.1 * (hours - 12)
    y = draw.random(count) < 1 / (1 + np.exp(-liked))
    frame = pandas.DataFrame({"user": users, "item": [f"item {i}" for i in items], "hour": hours})
    return frame, np.where(y, "click", "none")


def proba_in_child(pickled, frame):
    return pickle.loads(pickled).predict_proba(frame).tobytes()


def quick(**options):
    return {"epochs": 4, "learning_rate": 0.01, "batch_size": 32, "device": "cpu", **options}


class Estimators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.X, cls.y = clicks()
        cls.newer, cls.newer_y = clicks(400, 1)
        cls.model = CTRClassifier(**quick()).fit(cls.X, cls.y, categorical_feature=["user", "item"])

    def test_check_estimator_passes(self):
        from sklearn.utils.estimator_checks import check_estimator

        for estimator in (CTRClassifier(**quick(epochs=20)), CTRRegressor(**quick(epochs=20))):
            with self.subTest(estimator=type(estimator).__name__), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    results = check_estimator(estimator, on_skip=None, on_fail=None, expected_failed_checks=EXCEPTIONS)
                except TypeError:
                    self.skipTest("this scikit-learn does not take exceptions: 1.6 does")
                failed = [(one["check_name"], one["exception"]) for one in results if one["status"] == "failed"]
                self.assertEqual(failed, [])
                self.assertGreater(sum(one["status"] == "passed" for one in results), 40)

    def test_classes_are_those_of_y(self):
        self.assertEqual(self.model.classes_.tolist(), ["click", "none"])
        proba = self.model.predict_proba(self.newer)
        self.assertEqual(proba.shape, (400, 2))
        self.assertTrue(np.allclose(proba.sum(1), 1))
        self.assertEqual(set(self.model.predict(self.newer)), {"click", "none"})
        self.assertGreater(self.model.score(self.newer, self.newer_y), 0.7)
        logits = self.model.decision_function(self.newer)
        self.assertTrue(np.allclose(1 / (1 + np.exp(-logits)), proba[:, 1], atol=1e-5))

    def test_equal_states_give_equal_models(self):
        again = clone(self.model).fit(self.X, self.y, categorical_feature=["user", "item"])
        self.assertTrue(np.array_equal(again.predict_proba(self.newer), self.model.predict_proba(self.newer)))
        other = clone(self.model).set_params(random_state=7).fit(self.X, self.y)
        self.assertFalse(np.array_equal(other.predict_proba(self.newer), self.model.predict_proba(self.newer)))

    def test_early_stopping_keeps_the_best(self):
        model = CTRClassifier(**quick(epochs=30, early_stopping_rounds=2, learning_rate=0.05))
        model.fit(self.X, self.y, eval_set=[(self.newer, self.newer_y)])
        areas = [one["AUC"] for one in model.evals_result_]
        self.assertLess(len(areas), 30)
        self.assertAlmostEqual(
            max(areas), model.model_.evaluate(dict(self.newer, **{"(label)": self.newer_y == "none"}))["AUC"]
        )

    def test_importances_are_shares_of_the_columns(self):
        found = self.model.feature_importances_
        self.assertEqual(found.shape, (3,))
        self.assertAlmostEqual(found.sum(), 1)
        self.assertLess(found[2], max(found[:2]))

    def test_weights_count(self):
        weights = np.where(self.y == "click", 5.0, 1.0)
        weighed = clone(self.model).fit(self.X, self.y, sample_weight=weights, categorical_feature=["user", "item"])
        plain = self.model.predict_proba(self.newer)[:, 0].mean()
        self.assertGreater(weighed.predict_proba(self.newer)[:, 0].mean(), plain + 0.1)
        with self.assertRaisesRegex(ValueError, "sample_weight has 2 values, but y has 1200"):
            clone(self.model).fit(self.X, self.y, sample_weight=[1, 2])

    def test_search_and_cross_validation(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = GridSearchCV(CTRClassifier(**quick()), {"embedding_dim": [2, 8]}, cv=2, scoring="roc_auc")
            search.fit(self.X, self.y == "click")
        self.assertIn(search.best_params_["embedding_dim"], (2, 8))
        self.assertGreater(search.best_score_, 0.6)
        scores = cross_val_score(CTRClassifier(**quick(epochs=2)), self.X, self.y, cv=2)
        self.assertEqual(len(scores), 2)
        numbers = self.X[["user", "hour"]]
        self.assertGreater(
            make_pipeline(StandardScaler(), CTRClassifier(**quick())).fit(numbers, self.y).score(numbers, self.y), 0.5
        )

    def test_pickles_between_processes(self):
        expected = self.model.predict_proba(self.newer)
        self.assertTrue(np.array_equal(pickle.loads(pickle.dumps(self.model)).predict_proba(self.newer), expected))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            job = pool.apply_async(proba_in_child, (pickle.dumps(self.model), self.newer))
            self.assertEqual(job.get(120), expected.tobytes())

    def test_a_regressor_learns_a_mean(self):
        draw = np.random.default_rng(0)
        X = draw.normal(size=(600, 3))
        y = 3 * X[:, 0] - X[:, 1] + 10
        model = CTRRegressor(**quick(epochs=30)).fit(X, y, eval_set=(X[:100], y[:100]))
        self.assertGreater(model.score(X, y), 0.8)
        self.assertGreater(model.feature_importances_[0], model.feature_importances_[2])
        self.assertTrue((model.predict(X) >= y.min()).all() and (model.predict(X) <= y.max()).all())

    def test_what_does_not_fit_is_said(self):
        for message, fit in {
            "binary": lambda m: m.fit(self.X, np.arange(1200) % 3),
            "one class": lambda m: m.fit(self.X, np.zeros(1200)),
            "'none', but the columns of X are user": lambda m: m.fit(self.X, self.y, categorical_feature=["none"]),
            "y of eval_set has": lambda m: m.fit(self.X, self.y, eval_set=(self.X, np.full(1200, "other"))),
        }.items():
            with self.subTest(message=message), self.assertRaisesRegex(ValueError, message):
                fit(CTRClassifier(**quick()))


if __name__ == "__main__":
    unittest.main()
