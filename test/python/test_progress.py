"""The progress bar of fit(): only on terminals and in notebooks, complete at the end, one line even after errors."""

import contextlib
import io
import os
import signal
import sys
import types
import unittest
from unittest import mock

import huge_ctr
import support


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Bars(support.InFolder):
    def drawn(self, out, data=None, **options):
        with contextlib.redirect_stderr(out), huge_ctr.Trainer(support.shop_config(), data, device="cpu") as trainer:
            trainer.fit(**options)
        return out.getvalue()

    def test_in_a_terminal_it_ends_whole_and_with_its_line(self):
        drawn = self.drawn(Terminal(), display=7)
        self.assertEqual((drawn.count("\n"), drawn[0], drawn[-1]), (1, "\r", "\n"))
        last = drawn.split("\r")[-1]
        for part in ("[" + "#" * 24 + "] 100%", "iteration 20", "AUC 0."):
            self.assertIn(part, last)
        table = support.columns_of(self.train_rows)
        self.assertIn("[#############...........]  53%  iteration 5  ", self.drawn(Terminal(), table, passes=1))

    def test_lines_fit_the_terminal(self):
        with mock.patch.dict(os.environ, {"COLUMNS": "40"}):
            drawn = self.drawn(Terminal())
        self.assertEqual(max(len(line.rstrip("\n")) for line in drawn.split("\r")), 39)

    def test_it_ends_its_line_when_training_does_not_end(self):
        def fail(state):
            raise LookupError("of the callback")

        def interrupt(state):
            os.kill(os.getpid(), signal.SIGINT)

        for callback, error in ((fail, LookupError), (interrupt, KeyboardInterrupt)):
            out = Terminal()
            with self.assertRaises(error):
                self.drawn(out, callbacks=[callback])
            self.assertRegex(out.getvalue(), r"^\r.*iteration 5 .*\n$")

    def test_nothing_is_drawn_where_nobody_looks(self):
        self.assertEqual(self.drawn(io.StringIO()), "")
        self.assertEqual(self.drawn(Terminal(), progress=False), "")

    def test_in_a_notebook_it_is_drawn(self):
        class ZMQInteractiveShell:
            pass

        notebook = types.SimpleNamespace(get_ipython=ZMQInteractiveShell)
        with mock.patch.dict(sys.modules, {"IPython": notebook}):
            self.assertTrue(self.drawn(io.StringIO()).endswith("\n"))


if __name__ == "__main__":
    unittest.main()
