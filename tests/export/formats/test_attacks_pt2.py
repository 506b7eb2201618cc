"""``.pt2`` files that torch alone would let run code, write files or never end: none of them is opened."""

import json
import logging
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from two_faces import archive_of, two_faced

from headsmith.core.errors import InputError
from headsmith.export import Classifier, file_info, open_model
from headsmith.export.formats.exported_program_format import write_exported_program
from headsmith.export.metadata import Metadata, identity
from headsmith.models import Linear

ABOUT = Metadata(tuple("abcdef"), "features", None, identity(None, 8), "feature set")
WEIGHTS, PROGRAM = "a/data/weights/model_weights_config.json", "a/models/model.json"


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    path = tmp_path_factory.mktemp("pt2") / "a.pt2"
    write_exported_program(Classifier(Linear(8, 6)), ABOUT, path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "marker"


def refused(path, marker, match):
    for reader in (open_model, file_info):
        with pytest.raises(InputError, match=match) as error:
            reader(path)
        assert "\n" not in str(error.value) and str(path) in str(error.value) and not marker.exists()


def opened_by_torch(path):
    """Whether torch's own reader makes the marker, which shows that the attack is one."""
    logging.disable(logging.CRITICAL)
    try:
        torch.export.load(path).module()(torch.zeros(3, 8))
    except Exception:  # noqa: BLE001 - what it does afterwards does not matter
        return False
    finally:
        logging.disable(logging.NOTSET)
    return True


def test_a_second_directory_is_not_what_torch_reads(members, marker, tmp_path):
    config = json.loads(members[WEIGHTS])
    entry = next(iter(config["config"].values()))
    entry["use_pickle"] = True
    weight = f"a/data/weights/{entry['path_name']}"
    torch.save(Touch(marker), tmp_path / "evil.pt")
    hidden = members | {WEIGHTS: json.dumps(config).encode(), weight: (tmp_path / "evil.pt").read_bytes()}
    path = tmp_path / "model.pt2"
    path.write_bytes(two_faced(members, hidden))
    with zipfile.ZipFile(path) as archive:  # what a check by zipfile sees
        assert {name: archive.read(name) for name in members} == members and archive.testzip() is None
    opened_by_torch(path)
    assert marker.exists()  # it is an attack
    marker.unlink()
    refused(path, marker, "its directory does not end at its end record")


def test_an_operator_that_writes_files_is_refused_by_name(members, marker, tmp_path):
    program = json.loads(members[PROGRAM])
    graph = program["graph_module"]["graph"]
    graph["tensor_values"]["mapped"] = {
        "dtype": 1,
        "sizes": [{"as_int": 8}],
        "strides": [{"as_int": 1}],
        "storage_offset": {"as_int": 0},
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "layout": 7,
    }
    graph["tensor_values"]["filled"] = graph["tensor_values"]["mapped"]
    opening = {"filename": {"as_string": str(marker)}, "shared": {"as_bool": True}, "size": {"as_int": 8}}
    opening["dtype"] = {"as_scalar_type": 1}
    graph["nodes"][:0] = [
        node("torch.ops.aten.from_file.default", "mapped", opening),
        node(
            "torch.ops.aten.fill_.Scalar",
            "filled",
            {"self": {"as_tensor": {"name": "mapped"}}, "value": {"as_int": 65}},
        ),
    ]
    path = tmp_path / "model.pt2"
    path.write_bytes(archive_of(members | {PROGRAM: json.dumps(program).encode()}))
    assert opened_by_torch(path) and marker.read_bytes() == b"AAAAAAAA"
    marker.unlink()
    refused(path, marker, r"holds 'torch\.ops\.aten\.from_file\.default'")


def node(target, name, arguments):
    inputs = [{"name": key, "arg": arg, "kind": 2 if key == "dtype" else 1} for key, arg in arguments.items()]
    return {
        "target": target,
        "inputs": inputs,
        "outputs": [{"as_tensor": {"name": name}}],
        "metadata": {},
        "name": name,
    }


def change(program, marker, **where):
    """A program with one of its fields changed."""
    graph, call = program["graph_module"]["graph"], program["graph_module"]["module_call_graph"][0]["signature"]
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    node = graph["nodes"][0]
    size = next(iter(graph["tensor_values"].values()))["sizes"][0]
    expression = {"as_expr": {"expr_str": "", "hint": None}}
    inputs = graph["inputs"][-1]["as_tensor"]["name"]
    changes = {
        "guards": lambda: program["guards_code"].append(f"{code} is None"),
        "guards that are long": lambda: program["guards_code"].append("1" * 5000 + "~"),
        "guards of lists": lambda: program["guards_code"].append("[L['inputs'].size()[0]] * 10"),
        "input name": lambda: graph["inputs"][-1]["as_tensor"].update(name=f"x={code}"),
        "keyword as name": lambda: graph["inputs"][-1]["as_tensor"].update(name="lambda"),
        "argument names": lambda: call.update(forward_arg_names=[f"x={code}"]),
        "node name": lambda: node.update(name=f"a\n  {code}\n  b"),
        "parameter": lambda: program["graph_module"]["signature"]["input_specs"][0]["parameter"].update(
            parameter_name=f'x"), {code}, getattr(self, "x'
        ),
        "sub-graph": lambda: node["inputs"].append(
            {"name": "x", "arg": {"as_graph": {"name": "x", "graph": json.loads(json.dumps(graph))}}}
        ),
        "operator as argument": lambda: node["inputs"].append({"name": "x", "arg": {"as_operator": "torch.hub.load"}}),
        "custom object": lambda: node["inputs"].append(
            {"name": "x", "arg": {"as_custom_obj": {"name": "x", "class_fqn": "x"}}}
        ),
        "text": lambda: node["inputs"].append({"name": "x", "arg": {"as_string": f"' + {code} + '"}}),
        "higher order": lambda: node.update(target="torch.ops.higher_order.cond"),
        "save": lambda: node.update(target="torch.save"),
        "system": lambda: node.update(target="torch.os.system"),
        "file": lambda: node.update(target="torch.ops.aten.from_file.out"),
        "other library": lambda: node.update(target="torch.ops.image.write_file.default"),
        "random": lambda: node.update(target="torch.ops.aten.rand.default"),
        "power": lambda: size.update(expression | {"as_expr": {"expr_str": "9**9**9**9", "hint": None}}),
        "power of sympy": lambda: graph["sym_int_values"].update(
            x={"as_expr": {"expr_str": "Pow(Integer(9), Pow(Integer(9), Integer(99999999)))", "hint": None}}
        ),
        "call": lambda: graph["sym_int_values"].update(x={"as_expr": {"expr_str": code, "hint": None}}),
        "attribute": lambda: graph["sym_int_values"].update(
            x={"as_expr": {"expr_str": "Integer(1).args", "hint": None}}
        ),
        "deep": lambda: graph["sym_int_values"].update(
            x={"as_expr": {"expr_str": "(" * 9000 + "1" + ")" * 9000, "hint": None}}
        ),
        "factorial": lambda: graph["sym_int_values"].update(
            x={"as_expr": {"expr_str": "factorial(Integer(999999999))", "hint": None}}
        ),
        "symbol": lambda: program["range_constraints"].update({"u99999999999": {"min_val": 0, "max_val": None}}),
        "range": lambda: program["range_constraints"].update({code: {"min_val": 0, "max_val": None}}),
        "tree": lambda: call.update(in_spec=call["in_spec"].replace("builtins.dict", "collections.defaultdict")),
        "notes": lambda: node.update(metadata={"from_node": "[{}]"}),
        "notes of the module": lambda: program["graph_module"].update(metadata={"custom": "{}"}),
        "named tuples": lambda: program["graph_module"].update(
            treespec_namedtuple_fields={"x": {"field_names": [code]}}
        ),
        "verifier": lambda: program.update(verifiers=["EDGE"]),
        "mutation": lambda: program["graph_module"]["signature"]["output_specs"].append(
            {"buffer_mutation": {"arg": {"name": inputs}, "buffer_name": "x"}}
        ),
        "not an object": lambda: program.update(graph_module=[1]),
    }
    if not where:
        return changes
    changes[where["field"]]()
    return program


@pytest.mark.parametrize(
    "field", list(change({"graph_module": {"graph": {"nodes": [{}], "tensor_values": {"x": {"sizes": [0]}},
        "inputs": [{"as_tensor": {"name": "x"}}]}, "module_call_graph": [{"signature": {}}]}}, "x"))
)  # fmt: skip
def test_a_field_that_torch_would_run_or_look_up_is_refused(members, marker, tmp_path, field):
    program = change(json.loads(members[PROGRAM]), marker, field=field)
    path = tmp_path / "model.pt2"
    path.write_bytes(archive_of(members | {PROGRAM: json.dumps(program).encode()}))
    refused(path, marker, r"model\.pt2: holds .*, which could run code or write files; only programs that headsmith")


def test_guards_of_plain_arithmetic_are_not_run_either(members, marker, tmp_path):
    program = json.loads(members[PROGRAM])
    program["guards_code"] = [
        "3*L['inputs'].size()[0]*(L['inputs'].size()[1] // 2) >= 9999",  # as torch 2.14 writes them, and 2.10
        "max(1, (-2) + L['inputs'].size()[0]) > 9999 or torch.sym_min(3, L['inputs'].size()[0]) != 9",
    ]
    path = tmp_path / "model.pt2"
    path.write_bytes(archive_of(members | {PROGRAM: json.dumps(program).encode()}))
    open_model(path).answer(torch.zeros(2, 8).numpy())


@pytest.mark.parametrize(
    "change",
    [
        {"path_name": "../../x"},
        {"path_name": "opaque_obj_0"},
        {"use_pickle": True},
        {"tensor_meta": None},
        {"use_pickle": 1},
    ],
)
def test_weights_that_are_no_plain_bytes_are_refused(members, marker, tmp_path, change):
    config = json.loads(members[WEIGHTS])
    next(iter(config["config"].values())).update(change)
    path = tmp_path / "model.pt2"
    path.write_bytes(archive_of(members | {WEIGHTS: json.dumps(config).encode()}))
    refused(path, marker, "holds .*, which could run code")


def test_a_weight_without_bytes_takes_no_memory(members, marker, tmp_path):
    config = json.loads(members[WEIGHTS])
    entry = next(iter(config["config"].values()))
    entry["tensor_meta"]["sizes"] = [{"as_int": 1 << 40}]
    path = tmp_path / "model.pt2"
    weight = {f"a/data/weights/{entry['path_name']}": b""}
    path.write_bytes(archive_of(members | {WEIGHTS: json.dumps(config).encode()} | weight))
    refused(path, marker, r"weight_\d of \[1099511627776\]")


@pytest.mark.parametrize(
    "member", ["a/data/aotinductor/model/x.so", "a/data/weights/model.pt", "a/models/other.json", "a/version"]
)
def test_members_that_torch_would_run_or_unpickle_are_refused(members, marker, tmp_path, member):
    path = tmp_path / "model.pt2"
    path.write_bytes(archive_of(members | {member: pickle.dumps(Touch(marker))}))
    refused(path, marker, "holds .*, which could run code")
