"""The package's ctypes declarations match the C header: fields of structs and arguments of functions."""

import ast
import re
import unittest
from pathlib import Path

from huge_ctr import _embedding_structs, _library, _stream_structs, _structs

ROOT = Path(__file__).resolve().parents[2]
MODULES = (_structs, _embedding_structs, _stream_structs)
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
    "hctr_store_options": "StoreOptions",
    "hctr_store_source": "StoreSource",
    "hctr_store_model": "StoreModel",
    "hctr_store_update": "StoreUpdate",
    "hctr_store_model_state": "StoreModelState",
    "hctr_store_level_state": "StoreLevelState",
    "hctr_store_table": "StoreTable",
    "hctr_store_lookup": "StoreLookup",
    "hctr_store_cache_state": "StoreCacheState",
    "hctr_stream_options": "StreamOptions",
    "hctr_delta_table": "DeltaTable",
    "hctr_delta_about": "DeltaAbout",
    "hctr_delta_rows": "DeltaRows",
    "hctr_stream_statistics": "StreamStatistics",
    "hctr_store_stream_options": "StoreStreamOptions",
    "hctr_store_stream_state": "StoreStreamState",
    "hctr_join": "Join",
    "hctr_optimizer": "Optimizer",
    "hctr_table": "Table",
    "hctr_feature": "Feature",
    "hctr_embedding_options": "EmbeddingOptions",
    "hctr_feature_keys": "FeatureKeys",
    "hctr_update": "Update",
    "hctr_row_gradients": "RowGradients",
}


def header():
    parts = sorted((ROOT / "include/hctr/c").glob("*.h"))
    return re.sub(r"/\*.*?\*/", " ", "".join(path.read_text() for path in parts), flags=re.S)


class Header(unittest.TestCase):
    def test_structs_have_the_fields_of_the_header(self):
        text = header()
        for name, ours in STRUCTS.items():
            body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", text, re.S)[1]
            fields = []
            for declared in filter(str.strip, body.split(";")):
                fields += [re.search(r"(\w+)\s*$", part)[1] for part in declared.split(",")]
            struct = next(getattr(module, ours) for module in MODULES if hasattr(module, ours))
            self.assertEqual([field[0] for field in struct._fields_], fields, name)

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
