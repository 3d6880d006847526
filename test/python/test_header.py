"""The package's declarations match the C header: structs field by field, and functions with their arguments."""

import ast
import re
import unittest
from pathlib import Path

from huge_ctr import _library, _structs

ROOT = Path(__file__).resolve().parents[2]
STRUCTS = {
    "hctr_array": "Array",
    "hctr_model_options": "ModelOptions",
    "hctr_tensor": "Tensor",
    "hctr_model_input": "Input",
    "hctr_model_output": "Output",
    "hctr_use_options": "UseOptions",
    "hctr_use_summary": "UseSummary",
    "hctr_trainer_options": "TrainerOptions",
    "hctr_metric_value": "MetricValue",
    "hctr_trainer_state": "TrainerState",
    "hctr_fit_options": "FitOptions",
    "hctr_weight_files": "WeightFiles",
}


def header():
    return re.sub(r"/\*.*?\*/", " ", (ROOT / "include/hctr/huge_ctr.h").read_text(), flags=re.S)


class Header(unittest.TestCase):
    def test_structs_have_the_fields_of_the_header(self):
        text = header()
        for name, ours in STRUCTS.items():
            body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", text, re.S)[1]
            fields = []
            for declared in filter(str.strip, body.split(";")):
                fields += [re.search(r"(\w+)\s*$", part)[1] for part in declared.split(",")]
            self.assertEqual([field[0] for field in getattr(_structs, ours)._fields_], fields, name)

    def test_functions_have_as_many_arguments(self):
        text = header()
        prototypes = {name: arguments for name, (arguments, _) in _library._OTHERS.items()}
        prototypes.update(_library._PROTOTYPES)
        for name, arguments in prototypes.items():
            declared = re.search(rf"\b{name}\((.*?)\);", text, re.S)[1].strip()
            count = 0 if declared == "void" else declared.count(",") + 1
            self.assertEqual(len(arguments), count, name)

    def test_sources_are_of_the_oldest_python(self):
        for path in sorted((ROOT / "python").rglob("*.py")):
            ast.parse(path.read_text(), str(path), feature_version=(3, 9))


if __name__ == "__main__":
    unittest.main()
