"""Trainer: consecutive calls, callbacks, interrupts, checkpoints, errors, processes and threads."""

import logging
import os
import signal
import threading
import unittest
from pathlib import Path

import huge_ctr
import numpy as np
import support


class Training(support.InFolder):
    def trainer(self, **options):
        return huge_ctr.Trainer(support.shop_config(), device="cpu", **options)

    def test_fit_tells_displays_and_evaluations(self):
        seen = []

        class Both(huge_ctr.Callback):
            def on_display(self, state):
                seen.append(("display", state.iteration))

            def on_evaluation(self, state):
                seen.append(("evaluation", state.iteration, sorted(state.metrics)))

        with self.trainer() as trainer:
            history = trainer.fit(callbacks=[Both()])
            self.assertEqual(history.ended, "reached")
            self.assertEqual(trainer.state.iteration, 20)
            self.assertEqual(trainer.state.passes, 2)
        self.assertIn(("display", 5), seen)
        self.assertIn(("evaluation", 10, ["AUC", "AverageLoss"]), seen)
        self.assertEqual([at.iteration for at in history.evaluations], [10, 20])

    def test_a_callback_stops_and_training_goes_on_later(self):
        with self.trainer() as trainer:
            self.assertEqual(trainer.fit(callbacks=[lambda state: False]).ended, "stopped")
            self.assertEqual(trainer.state.iteration, 5)
            self.assertEqual(trainer.fit().ended, "reached")
            self.assertEqual(trainer.state.iteration, 20)

    def test_what_a_callback_raises_leaves_fit(self):
        def fail(state):
            raise LookupError(f"at {state.iteration}")

        with self.trainer() as trainer:
            with self.says(LookupError, "at 5"):
                trainer.fit(callbacks=[fail])
            self.assertEqual(trainer.fit().ended, "reached")

    def test_an_interrupt_leaves_everything_usable(self):
        def interrupt(state):
            os.kill(os.getpid(), signal.SIGINT)

        with self.trainer() as trainer:
            with self.assertRaises(KeyboardInterrupt):
                trainer.fit(iterations=100_000, callbacks=[interrupt])
            self.assertLess(trainer.state.iteration, 100_000)
            at = trainer.state.iteration
            trainer.step(2)
            self.assertEqual(trainer.state.iteration, at + 2)
            self.assertGreater(len(trainer.model().predict("eval.csv")), 0)

    def test_rate_freeze_and_steps(self):
        with self.trainer() as trainer:
            trainer.set_learning_rate(0.5)
            self.assertEqual(trainer.state.learning_rate, 0.5)
            trainer.set_learning_rate(None)
            self.assertAlmostEqual(trainer.state.learning_rate, 0.01, places=6)
            before = trainer.model()
            trainer.freeze("vectors", "fc1")
            trainer.step(3)
            after = trainer.model()
            self.assertTrue(np.array_equal(before.dense["fc1/weights"], after.dense["fc1/weights"]))
            self.assertFalse(np.array_equal(before.dense["logit/weights"], after.dense["logit/weights"]))
            trainer.unfreeze("vectors", "fc1")
            trainer.step(3)
            self.assertFalse(np.array_equal(after.dense["fc1/weights"], trainer.model().dense["fc1/weights"]))
            with self.says(huge_ctr.UsageError, "'nothing'", "'fc1'"):
                trainer.freeze("nothing")

    def test_checkpoint_and_resume_give_the_same_run(self):
        with self.trainer() as trainer:
            trainer.fit(iterations=7)
            folder = trainer.checkpoint("ckpt")
            trainer.fit()
            expected = trainer.model().dense
        with self.trainer(resume=folder) as resumed:
            self.assertEqual(resumed.state.iteration, 7)
            resumed.fit()
            found = resumed.model().dense
        for name, values in expected.items():
            self.assertTrue(np.array_equal(values, found[name]), name)

    def test_save_and_load(self):
        with self.trainer() as trainer:
            trainer.fit()
            files = trainer.save("saved/mine")
            expected = trainer.evaluate()
        self.assertTrue(files[0].name.endswith("_dense_20.model"))
        with self.trainer() as other:
            other.load(dense=files[0], tables={"vectors": "saved/mine0_sparse_20.model"})
            self.assertEqual(other.evaluate(), expected)
            with self.says(huge_ctr.UsageError, "'items'"):
                other.load(tables={"items": files[0]})
            with self.says(huge_ctr.FileError, "gone.model"):
                other.load(dense="gone.model")
            self.assertEqual(other.evaluate(), expected)

    def test_an_iterator_of_tables(self):
        columns = support.columns_of(self.train_rows)
        parts = ({name: values[at : at + 128] for name, values in columns.items()} for at in range(0, 600, 128))
        with self.trainer() as trainer:
            trainer.fit(parts)
            self.assertEqual(trainer.state.samples, 600)
            self.assertIn("AUC", trainer.evaluate(support.columns_of(self.eval_rows)))
            with self.says(huge_ctr.UsageError, "int", "tables"):
                trainer.fit([1])

    def test_arrays_are_named(self):
        with self.trainer() as trainer:
            self.assertEqual(trainer.inputs, {"label": ("labels", 1), "dense": ("dense", 2), "keys": ("keys", 3)})
            batch = {"label": np.ones(4), "dense": np.zeros((4, 2)), "keys": np.zeros((4, 3), int)}
            trainer.step(batch)
            with self.says(huge_ctr.UsageError, "'dense'", "(4, 3)", "(samples, 2)"):
                trainer.step({**batch, "dense": np.zeros((4, 3))})
            with self.says(huge_ctr.UsageError, "'keys'"):
                trainer.step({name: batch[name] for name in ("label", "dense")})
            with self.says(huge_ctr.DataError, "label", "7"):
                trainer.step({**batch, "label": np.full(4, 7.0)})

    def test_errors_of_configs_name_their_place(self):
        with self.says(huge_ctr.ConfigError, "line 1"):
            huge_ctr.Trainer('{"solver": }')
        with self.says(huge_ctr.FileError, "none.json"):
            huge_ctr.Trainer("none.json")
        config = support.shop_config()
        config["layers"][4]["fc_param"]["num_output"] = -1
        with self.says(huge_ctr.ConfigError, "num_output", "-1"):
            huge_ctr.Trainer(config)
        with self.says(huge_ctr.ConfigError, "learning_rate"):
            self.trainer(changes={"optimizer.adam_hparam.learningrate": 0.1})
        with self.says(huge_ctr.UsageError, "tpu", "cuda"):
            huge_ctr.Trainer(config, device="tpu")
        for error in (huge_ctr.ConfigError, huge_ctr.UsageError, huge_ctr.DataError):
            self.assertTrue(issubclass(error, (huge_ctr.HugeCtrError, ValueError)))

    def test_closed_and_forked_handles_are_said(self):
        trainer = self.trainer()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                trainer.step()
            except huge_ctr.ForkError as error:
                code = 0 if "spawn" in str(error) else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        trainer.step()
        trainer.close()
        with self.says(huge_ctr.UsageError, "closed"):
            trainer.step()

    def test_trainers_of_two_threads_do_not_disturb_each_other(self):
        found = {}

        def work(name):
            with self.trainer(threads=1) as trainer:
                trainer.fit()
                found[name] = trainer.evaluate()

        threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(found["a"], found["b"])

    def test_the_log_goes_to_logging(self):
        with self.assertLogs("huge_ctr", logging.INFO) as caught, self.trainer() as trainer:
            trainer.fit()
        self.assertTrue(any("loss" in line for line in caught.output), caught.output)

    def test_finish_writes_the_run_folder(self):
        with self.trainer(run_dir="finished") as trainer:
            trainer.fit()
            trainer.finish()
            with self.says(huge_ctr.UsageError, "finish"):
                trainer.step()
        self.assertTrue(Path("finished/summary.json").is_file())

    def test_pictures(self):
        with self.trainer() as trainer:
            trainer.fit(progress=False)
            page = trainer._repr_html_()
        for part in ("iteration 20", "Embedding", "training loss", "AUC"):
            self.assertIn(part, page)


if __name__ == "__main__":
    unittest.main()
