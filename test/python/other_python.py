"""Trains and uses a model from a table, with NumPy only. run.py runs this script on other installed Pythons."""

import pickle
import sys

import huge_ctr
import numpy as np

draw = np.random.default_rng(1)
count = 400
rows = {
    "user": draw.integers(0, 20, count),
    "city": draw.choice(["Oslo", "Malmö", "Rome"], count).tolist(),
    "price": draw.lognormal(3, 1, count),
}
rows["clicked"] = (rows["user"] % 2).astype(np.int32)
config = huge_ctr.presets.wide_and_deep(rows, label="clicked")
with huge_ctr.Trainer(config, rows, rows, device="cpu") as trainer:
    trainer.fit(passes=1, progress=False, callbacks=[lambda state: True])
    model = trainer.model()
scores = model.predict(rows)
arrays = model.encode(rows)
into = np.zeros(count, np.float32)
assert model.predict(arrays, out=into) is into
assert np.array_equal(scores, into)
assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(rows), scores)
assert set(model.evaluate(rows)) == {"AUC", "AverageLoss"}
assert "table" in model._repr_html_()
assert model.tables["city"].vectors_of(["Malmö"]).any()
try:
    huge_ctr.load("there is none")
except huge_ctr.FileError:
    print(f"Python {sys.version.split()[0]} with NumPy {np.__version__}: right")
